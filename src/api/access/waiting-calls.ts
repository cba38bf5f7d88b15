import type { FastifyRequest } from 'fastify';
import type { Access } from './access.ts';
import type { Api } from '../deps.ts';
import type { Problem } from '../http/problem.ts';
import { whenGone } from '../http/plugins/in-turn.ts';
import type { Strangers } from '../http/plugins/strangers.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Of routes whose pace is `waits`. */
    patience: Patience;
  }
}

/** What ends the wait of a call, beside its own time. */
interface Patience {
  /** Aborted when nobody is there any more to answer to, or nobody that may know. */
  gone: AbortSignal;
  /** Aborted when it is to be answered with what there is, as at the end of its time. */
  enough: AbortSignal;
  /** Why the caller gets no answer: its token was revoked meanwhile, or has expired; null: it gets one. */
  refusal: () => Problem | null;
}

interface WaitingDeps {
  access: Pick<Access, 'standing'>;
  strangers: Pick<Strangers, 'waits'>;
}

/** A call may wait for a minute. Meanwhile its connection may be needed, and its caller may lose what allowed it. */
export function letCallsWait(api: Api, { access, strangers }: WaitingDeps): void {
  api.decorateRequest('patience', null as unknown as Patience);
  api.addHook('onRoute', (route) => {
    if (route.config?.pace !== 'waits') return;
    const { handler } = route;
    route.handler = async function letWait(request, reply) {
      const { patience, look, end } = waitingCall(request, access);
      request.patience = { ...patience, gone: AbortSignal.any([whenGone(reply), patience.gone]) };
      const giveWay = () => {
        // Else a client might send its next call over it while it is closed as an idle one.
        if (!reply.sent) void reply.header('Connection', 'close');
        end();
      };
      const leave = strangers.waits(request.raw.socket, { giveWay, look });
      try {
        const answer: unknown = await handler.call(this, request, reply);
        return answer;
      } finally {
        leave();
      }
    };
  });
}

function waitingCall(request: FastifyRequest, access: WaitingDeps['access']) {
  const [gone, enough] = [new AbortController(), new AbortController()];
  let refusal: Problem | null = null;
  const look = () => {
    if (refusal !== null) return;
    const standing = access.standing(request.raw);
    if (standing === 'changed') enough.abort();
    if (typeof standing === 'string') return;
    refusal = standing;
    gone.abort();
  };
  return {
    look,
    end: () => enough.abort(),
    patience: { gone: gone.signal, enough: enough.signal, refusal: () => refusal },
  };
}
