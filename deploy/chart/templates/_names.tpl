{{- define "messaging.labels" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
app.kubernetes.io/version: {{ .root.Values.image.tag | default .root.Chart.AppVersion | quote }}
{{- end }}

{{- define "messaging.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end }}

{{- define "messaging.fullname" -}}
{{ printf "%s-%s" .root.Release.Name .name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "messaging.image" -}}
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end }}

{{- /* Where every program finds the certificates that Node trusts beside its own. */}}
{{- define "messaging.certificatesFile" -}}
/etc/messaging/authorities.pem
{{- end }}

{{- define "messaging.certificatesMount" -}}
- name: authorities
  mountPath: /etc/messaging
  readOnly: true
{{- end }}

{{- define "messaging.certificatesVolume" -}}
- name: authorities
  configMap:
    name: {{ .Values.extraCertificates.configMap }}
    items:
      - key: {{ .Values.extraCertificates.key }}
        path: authorities.pem
{{- end }}

{{- /* Nobody in particular, who may do nothing in particular. */}}
{{- define "messaging.podSecurity" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  seccompProfile:
    type: RuntimeDefault
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "messaging.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}
