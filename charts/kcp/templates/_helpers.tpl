{{/* Our processes and their keys are always here, whatever namespace the release is recorded in. */}}
{{- define "kcp.namespace" -}}kcp-system{{- end }}

{{- define "kcp.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* Call with (dict "root" $ "component" "apiserver"). */}}
{{- define "kcp.selectorLabels" -}}
app.kubernetes.io/name: kcp
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "kcp.labels" -}}
{{ include "kcp.selectorLabels" . }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{/* Kept by kcp apiserver: a client certificate that may read its metrics. */}}
{{- define "kcp.metricsClientSecret" -}}kcp-metrics-client{{- end }}

{{- define "kcp.directHost" -}}
{{ .Values.direct.host | default (printf "kcp-apiserver.%s.svc" (include "kcp.namespace" .)) }}
{{- end }}

{{/* What PodSecurity "restricted" asks of a pod and of a container. */}}
{{- define "kcp.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}
{{- define "kcp.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* What all pods share. Call with (dict "root" $ "component" NAME "values" VALUES). */}}
{{- define "kcp.podSpec" -}}
serviceAccountName: kcp-{{ .component }}
securityContext:
  {{- include "kcp.podSecurityContext" . | nindent 2 }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "kcp.selectorLabels" . | nindent 8 }}
{{- end }}

{{/* Empty without an endpoint. A number of values.yaml may be a float. */}}
{{- define "kcp.tracingArgs" -}}
{{- with .Values.tracing.endpoint -}}
- --tracing-endpoint={{ . }}
- --tracing-sampling-rate-per-million={{ $.Values.tracing.samplingRatePerMillion | int64 }}
{{- end }}
{{- end }}

{{/* Empty with the defaults. */}}
{{- define "kcp.consoleArgs" -}}
{{- if not .Values.console.enabled -}}
- --no-console
{{- else if .Values.console.host -}}
- --console-origin=https://{{ .Values.console.host }}
{{- end }}
{{- end }}

{{/* Flags of the etcd with the logical clusters. */}}
{{- define "kcp.etcdArgs" -}}
{{- with (.Values.storage).etcd -}}
{{- if .servers -}}
{{- if eq $.Values.storage.mode "embedded" }}{{ fail "storage.etcd needs storage.mode host" }}{{ end -}}
{{- if and .user (not .secretName) }}{{ fail "storage.etcd.user needs storage.etcd.secretName, a Secret with key password" }}{{ end -}}
- --store=etcd
- --etcd-servers={{ join "," .servers }}
- --etcd-prefix={{ .prefix }}
- --etcd-compaction-interval={{ .compactionInterval }}
{{- if and .secretName (hasPrefix "https:" (first .servers)) }}
- --etcd-cafile=/etc/kcp/etcd/ca.crt
{{- if .clientCertificate }}
- --etcd-certfile=/etc/kcp/etcd/tls.crt
- --etcd-keyfile=/etc/kcp/etcd/tls.key
{{- end }}
{{- end }}
{{- with .user }}
- --etcd-user={{ . }}
- --etcd-password-file=/etc/kcp/etcd/password
{{- end }}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "kcp.etcdMount" -}}
{{- with (.Values.storage).etcd -}}
{{- if and .servers .secretName -}}
- {name: etcd, mountPath: /etc/kcp/etcd, readOnly: true}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "kcp.etcdVolume" -}}
{{- with (.Values.storage).etcd -}}
{{- if and .servers .secretName -}}
- {name: etcd, secret: {secretName: {{ .secretName }}, defaultMode: 288}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Flags of the PostgreSQL with the logical clusters. */}}
{{- define "kcp.postgresArgs" -}}
{{- with (.Values.storage).postgres -}}
{{- if .servers -}}
{{- if eq $.Values.storage.mode "embedded" }}{{ fail "storage.postgres needs storage.mode host" }}{{ end -}}
{{- if (($.Values.storage).etcd).servers }}{{ fail "storage.etcd and storage.postgres cannot both have servers" }}{{ end -}}
- --store=postgres
- --postgres-servers={{ join "," .servers }}
- --postgres-database={{ .database }}
- --postgres-schema={{ .schema }}
- --postgres-user={{ .user }}
- --postgres-history={{ .history }}
{{- if not .tls }}
- --postgres-tls=off
{{- end }}
{{- if .secretName }}
- --postgres-password-file=/etc/kcp/postgres/password
{{- if and .tls .ca }}
- --postgres-cafile=/etc/kcp/postgres/ca.crt
{{- end }}
{{- if and .tls .clientCertificate }}
- --postgres-certfile=/etc/kcp/postgres/tls.crt
- --postgres-keyfile=/etc/kcp/postgres/tls.key
{{- end }}
{{- else if or .ca .clientCertificate }}
{{ fail "storage.postgres.ca and clientCertificate need storage.postgres.secretName" }}
{{- end }}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "kcp.postgresMount" -}}
{{- with (.Values.storage).postgres -}}
{{- if and .servers .secretName -}}
- {name: postgres, mountPath: /etc/kcp/postgres, readOnly: true}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "kcp.postgresVolume" -}}
{{- with (.Values.storage).postgres -}}
{{- if and .servers .secretName -}}
- {name: postgres, secret: {secretName: {{ .secretName }}, defaultMode: 288}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Not empty if there is an AuthenticationConfiguration. */}}
{{- define "kcp.authentication" -}}
{{- with .Values.authentication -}}
{{- $given := compact (list (ternary "config" "" (not (empty .config))) .configMapName .secretName) -}}
{{- if gt (len $given) 1 -}}
{{- fail "authentication: give one of config, configMapName and secretName" -}}
{{- end -}}
{{- join "" $given -}}
{{- end -}}
{{- end }}

{{- define "kcp.authenticationArgs" -}}
{{- if include "kcp.authentication" . -}}
- --authentication-config=/etc/kcp/authentication/authentication.yaml
{{- end }}
{{- end }}

{{- define "kcp.authenticationMount" -}}
{{- if include "kcp.authentication" . -}}
- {name: authentication, mountPath: /etc/kcp/authentication, readOnly: true}
{{- end }}
{{- end }}

{{/* The whole folder is mounted: a single file would not follow changes. */}}
{{- define "kcp.authenticationVolume" -}}
{{- if include "kcp.authentication" . -}}
- name: authentication
  {{- with .Values.authentication }}
  {{- if .secretName }}
  secret: {secretName: {{ .secretName }}, items: [{key: authentication.yaml, path: authentication.yaml}]}
  {{- else }}
  configMap: {name: {{ .configMapName | default "kcp-authentication" }}, items: [{key: authentication.yaml, path: authentication.yaml}]}
  {{- end }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Not empty if there is an audit log. */}}
{{- define "kcp.audit" -}}
{{- with .Values.audit -}}
{{- $places := compact (list (ternary "stdout" "" .log.stdout) (ternary "volume" "" (not (empty .log.volume)))) -}}
{{- if gt (len $places) 1 -}}
{{- fail "audit.log: give one of stdout and volume" -}}
{{- end -}}
{{- if and .log.stdout (gt (int $.Values.apiserver.workers) 1) -}}
{{- fail "audit.log.stdout needs apiserver.workers 1: use a volume or a webhook" -}}
{{- end -}}
{{- if and .policy .policyConfigMapName -}}
{{- fail "audit: give one of policy and policyConfigMapName" -}}
{{- end -}}
{{- $places = concat $places (compact (list .webhook.secretName)) -}}
{{- if and (or .policy .policyConfigMapName) (empty $places) -}}
{{- fail "audit: a policy needs a place for its events: audit.log.stdout, audit.log.volume or audit.webhook.secretName" -}}
{{- end -}}
{{- join "," $places -}}
{{- end -}}
{{- end }}

{{- define "kcp.auditArgs" -}}
{{- if include "kcp.audit" . -}}
{{- with .Values.audit -}}
{{- if or .policy .policyConfigMapName }}
- --audit-policy-file=/etc/kcp/audit/policy.yaml
{{- end }}
{{- if .log.stdout }}
- --audit-log-path=-
{{- end }}
{{- if .log.volume }}
- --audit-log-path=/audit/$(POD_NAME).log
- --audit-log-maxsize={{ .log.maxSizeMiB | int }}
- --audit-log-maxbackup={{ .log.maxBackups | int }}
- --audit-log-maxage={{ .log.maxAgeDays | int }}
{{- end }}
{{- if .webhook.secretName }}
- --audit-webhook-config-file=/etc/kcp/audit-webhook/kubeconfig
{{- end }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The name of the file of a pod. */}}
{{- define "kcp.auditEnv" -}}
{{- if .Values.audit.log.volume -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
{{- end -}}
{{- end }}

{{- define "kcp.auditMounts" -}}
{{- with .Values.audit -}}
{{- if or .policy .policyConfigMapName }}
- {name: audit-policy, mountPath: /etc/kcp/audit, readOnly: true}
{{- end }}
{{- if .log.volume }}
- {name: audit-log, mountPath: /audit}
{{- end }}
{{- if .webhook.secretName }}
- {name: audit-webhook, mountPath: /etc/kcp/audit-webhook, readOnly: true}
{{- end }}
{{- end -}}
{{- end }}

{{- define "kcp.auditVolumes" -}}
{{- with .Values.audit -}}
{{- if or .policy .policyConfigMapName }}
- name: audit-policy
  configMap: {name: {{ .policyConfigMapName | default "kcp-audit-policy" }}, items: [{key: policy.yaml, path: policy.yaml}]}
{{- end }}
{{- with .log.volume }}
- name: audit-log
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .webhook.secretName }}
- name: audit-webhook
  secret: {secretName: {{ . }}, defaultMode: 288, items: [{key: kubeconfig, path: kubeconfig}]}
{{- end }}
{{- end -}}
{{- end }}

{{/* Call with the port's name. */}}
{{- define "kcp.probes" -}}
startupProbe:
  httpGet: {path: /readyz, port: https, scheme: HTTPS}
  periodSeconds: 2
  failureThreshold: 150
readinessProbe:
  httpGet: {path: /readyz, port: https, scheme: HTTPS}
  periodSeconds: 5
  timeoutSeconds: 5
livenessProbe:
  httpGet: {path: /livez, port: https, scheme: HTTPS}
  periodSeconds: 10
  timeoutSeconds: 10
  failureThreshold: 6
{{- end }}
