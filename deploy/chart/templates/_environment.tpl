{{- /* What a service is told beside its secret. */}}
{{- define "messaging.environment" -}}
{{- $values := .root.Values }}
{{- range $name := list "appId" "signupConfigId" }}
{{- if not (kindIs "string" (get $values.upstream $name)) }}
{{- fail (printf "upstream.%s must stand in quotes: a long number would be rounded" $name) }}
{{- end }}
{{- end }}
NATS_URL: {{ $values.nats.url | quote }}
NATS_REPLICAS: {{ $values.nats.replicas | quote }}
LOG_LEVEL: {{ $values.logLevel | quote }}
{{- if $values.extraCertificates.configMap }}
NODE_EXTRA_CA_CERTS: {{ include "messaging.certificatesFile" .root }}
{{- end }}
{{- with $values.tracing.endpoint }}
OTEL_EXPORTER_OTLP_ENDPOINT: {{ . | quote }}
OTEL_TRACES_SAMPLER_ARG: {{ $values.tracing.ratio | quote }}
{{- end }}
{{- if has .name (list "gateway" "messaging" "platform") }}
PUBLIC_URL: {{ required "publicUrl must be set" $values.publicUrl | quote }}
UPSTREAM_API_VERSION: {{ $values.upstream.apiVersion | quote }}
UPSTREAM_APP_ID: {{ required "upstream.appId must be set" $values.upstream.appId | quote }}
{{- end }}
{{- if eq .name "gateway" }}
TRUST_PROXY: {{ $values.trustProxy | quote }}
{{- with $values.upstream.signupConfigId }}
UPSTREAM_SIGNUP_CONFIG_ID: {{ . | quote }}
{{- end }}
{{- end }}
{{- if has .name (list "messaging" "platform") }}
UPSTREAM_BASE_URL: {{ $values.upstream.baseUrl | quote }}
{{- with $values.upstream.proxyUrl }}
UPSTREAM_PROXY_URL: {{ . | quote }}
{{- end }}
{{- end }}
{{- if has .name (list "messaging" "webhooks") }}
EGRESS_ALLOW_CIDRS: {{ $values.egressAllowCidrs | quote }}
{{- with $values.egressProxyUrl }}
EGRESS_PROXY_URL: {{ . | quote }}
{{- end }}
{{- end }}
{{- if has .name (list "gateway" "messaging") }}
MEDIA_STORE: {{ $values.media.store | quote }}
{{- if eq $values.media.store "s3" }}
S3_BUCKET: {{ required "media.s3.bucket must be set" $values.media.s3.bucket | quote }}
S3_REGION: {{ $values.media.s3.region | quote }}
{{- with $values.media.s3.endpoint }}
S3_ENDPOINT: {{ . | quote }}
{{- end }}
{{- else }}
MEDIA_DIR: /media
{{- end }}
{{- end }}
{{- end }}
