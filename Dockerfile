# The same Node as package.json pins for `npm start` and `npm test`: the current LTS.
ARG NODE_VERSION=24.21.0

FROM node:${NODE_VERSION}-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
# Types of the development and optional packages are enough to compile; nothing of them needs its install script.
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY src ./src
COPY web ./web
COPY clients/typescript/src/json-text.ts ./clients/typescript/src/
COPY scripts/build-web.ts ./scripts/
COPY scripts/support/sources-hash.ts ./scripts/support/
RUN npm run build

FROM node:${NODE_VERSION}-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
# `optional` is the embedded PostgreSQL: containers bring their own database. No other package of the image has an install
# script, and none is run.
RUN npm ci --omit=dev --omit=optional --ignore-scripts

FROM node:${NODE_VERSION}-slim
LABEL org.opencontainers.image.title="firelock" \
      org.opencontainers.image.description="A cron daemon that never loses a fire" \
      org.opencontainers.image.licenses="Apache-2.0"
WORKDIR /app
# Loopback inside a container reaches nobody. The daemon still refuses to listen here without tokens,
# unless FIRELOCK_ALLOW_ANONYMOUS=1 says that this is wanted.
ENV NODE_ENV=production \
    HOST=0.0.0.0 \
    PORT=8080
COPY package.json LICENSE ./
COPY --from=dependencies /app/node_modules ./node_modules
COPY drizzle ./drizzle
COPY --from=build /app/dist ./dist
# The image's `node` user by number, so that a platform can see that it is not root. It owns no file here.
USER 1000:1000
EXPOSE 8080
# Liveness, not readiness: instances outlive a database outage by design, and whoever replaces unhealthy containers
# must not end all of them, with the outcomes that they still hold in memory, because the database is away.
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.FIRELOCK_METRICS_PORT || process.env.PORT) + (process.env.FIRELOCK_BASE_PATH ?? '') + '/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# SIGTERM drains for at most FIRELOCK_SHUTDOWN_SECONDS (30). Give the container 10 s more before it is killed:
# `docker run --stop-timeout 40`, stop_grace_period: 40s, terminationGracePeriodSeconds: 40.
STOPSIGNAL SIGTERM
# The exec form: node is process 1 and gets the signal itself.
ENTRYPOINT ["node", "dist/main.js"]
