{{- define "firelock.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "firelock.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains (include "firelock.name" .) .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "firelock.name" .) | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "firelock.selectorLabels" -}}
app.kubernetes.io/name: {{ include "firelock.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "firelock.labels" -}}
{{ include "firelock.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "firelock.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "firelock.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "firelock.fullname" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end -}}

{{/* The port of /metrics, /healthz and /readyz, by its name. */}}
{{- define "firelock.signsPort" -}}
{{ if .Values.ports.metrics }}metrics{{ else }}http{{ end }}
{{- end -}}

{{/* What a variable gets from the Secret: (list VARIABLE key context). */}}
{{- define "firelock.fromSecret" -}}
{{- $context := index . 2 -}}
- name: {{ index . 0 }}
  valueFrom:
    secretKeyRef:
      name: {{ required "secret.name is missing: the name of a Secret that has DATABASE_URL, FIRELOCK_API_TOKENS and FIRELOCK_SECRET_KEYS" $context.Values.secret.name | quote }}
      key: {{ index . 1 | quote }}
{{- end -}}

{{/* The connections, which migrations need as well. */}}
{{- define "firelock.databaseEnv" -}}
{{- $keys := .Values.secret.keys -}}
{{ include "firelock.fromSecret" (list "DATABASE_URL" $keys.databaseUrl .) }}
{{- with $keys.migrationDatabaseUrl }}
{{ include "firelock.fromSecret" (list "FIRELOCK_MIGRATION_DATABASE_URL" . $) }}
{{- end }}
- name: LOG_LEVEL
  value: {{ .Values.logLevel | quote }}
{{- end -}}

{{- define "firelock.env" -}}
{{- $keys := .Values.secret.keys -}}
{{ include "firelock.databaseEnv" . }}
{{- with $keys.apiTokens }}
{{ include "firelock.fromSecret" (list "FIRELOCK_API_TOKENS" . $) }}
{{- end }}
{{- with $keys.secretKeys }}
{{ include "firelock.fromSecret" (list "FIRELOCK_SECRET_KEYS" . $) }}
{{- end }}
- name: HOST
  value: '0.0.0.0'
- name: PORT
  value: {{ .Values.ports.http | quote }}
{{- if .Values.ports.metrics }}
- name: FIRELOCK_METRICS_PORT
  value: {{ .Values.ports.metrics | quote }}
{{- end }}
- name: FIRELOCK_SHUTDOWN_SECONDS
  value: {{ .Values.shutdownSeconds | quote }}
{{- with .Values.basePath }}
- name: FIRELOCK_BASE_PATH
  value: {{ . | quote }}
{{- end }}
{{- if .Values.allowAnonymous }}
- name: FIRELOCK_ALLOW_ANONYMOUS
  value: '1'
{{- if not .Values.env.FIRELOCK_ALLOWED_HOSTS }}
{{- /* The names of the Service, and addresses of pods, at which Prometheus asks. */}}
{{- $name := include "firelock.fullname" . }}
{{- $inNamespace := printf "%s.%s" $name .Release.Namespace }}
- name: FIRELOCK_ALLOWED_HOSTS
  value: {{ printf "%s,%s,%s.svc,%s.svc.cluster.local,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,100.64.0.0/10,fc00::/7" $name $inNamespace $inNamespace $inNamespace | quote }}
{{- end }}
{{- end }}
{{- if .Values.schedules }}
- name: FIRELOCK_SCHEDULES_FILE
  value: /etc/firelock/schedules.yaml
{{- end }}
{{- range $name, $value := .Values.env }}
- name: {{ $name }}
  {{- /* Helm reads numbers as floats, and would write large ones as 1e+06. */}}
  value: {{ kindIs "float64" $value | ternary (int64 $value) $value | quote }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* A container that migrates the schema and ends. */}}
{{- define "firelock.migrateContainer" -}}
- name: migrate
  image: {{ include "firelock.image" . | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args: [migrate]
  env:
    {{- include "firelock.databaseEnv" . | nindent 4 }}
  {{- with .Values.extraEnvFrom }}
  envFrom:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  resources:
    {{- toYaml .Values.resources | nindent 4 }}
  securityContext:
    {{- toYaml .Values.securityContext | nindent 4 }}
  {{- with .Values.extraVolumeMounts }}
  volumeMounts:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
