// Pod templates on the way down, and pods and templates on the way up. What is changed is written into one annotation of
// the template, so that the way up needs nothing but the object itself: the member's ReplicaSets and pods carry it too.
import { cloneJson } from '../../apimachinery/meta/index.ts'
import {
  contentHash,
  managedLabel,
  namespaceAnnotation,
  servingLabel,
  templateChangesAnnotation,
} from '../../crds/index.ts'
import type { ContainerSpec, PodSpec, PodTemplate, VolumeSpec } from './pod-types.ts'

/** What a template of this logical cluster needs to know in this member. Stable: a change rolls out every workload. */
export interface PodContext {
  /** The namespace upstream. */
  readonly namespace: string
  /** `ID.MEMBERID`: the audience of tokens by which the server knows logical cluster and member. */
  readonly audience: string
  /** Where pods of the member reach the API of their logical cluster. */
  readonly apiAddress: { readonly host: string; readonly port: number }
  /** The nameserver that knows the tenant from the source pod. Absent: the member's own DNS is used. */
  readonly nameserver?: {
    readonly address: string
    /** The search domain of the logical cluster: `ID.kcp`. */
    readonly domain: string
  }
  /** automountServiceAccountToken of the pod's ServiceAccount, where it says something. */
  readonly accountAutomount?: boolean
}

export const apiAccessVolume = 'kcp-api-access'
/** ConfigMap in every namespace of ours in a member: `ca.crt` of the logical cluster and `namespace`. */
export const rootCaConfigMap = 'kcp-root-ca'

const accountDirectory = '/var/run/secrets/kubernetes.io/serviceaccount'
const hostName = 'KUBERNETES_SERVICE_HOST'
const portName = 'KUBERNETES_SERVICE_PORT'
const namespaceField = 'metadata.namespace'

/** What the way up needs to restore. Absent members were not changed. */
interface Journal {
  /** Name of the upstream template's content: the same in every member. */
  hash: string
  /** The tenant's automountServiceAccountToken, null where it was not set. */
  automount: boolean | null
  /** Containers that got the volume mount. */
  mounts?: string[]
  /** Containers that got the environment variables. */
  env?: string[]
  /** Containers whose env list we made: it is removed again. */
  noEnv?: string[]
  /** Containers whose volumeMounts list we made. */
  noMounts?: string[]
  /** The pod had no volumes. */
  noVolumes?: true
  /** The tenant's dnsPolicy and dnsConfig, null where not set. */
  dns?: { policy: string | null; config: unknown }
  /** container/variable whose fieldRef metadata.namespace became a value; with the fieldRef as it was. */
  fields?: { container: string; name: string; valueFrom: unknown }[]
  /** Volumes of the downward API whose metadata.namespace became an annotation. */
  volumes?: true
  /** The template had no labels, annotations or metadata at all. */
  noLabels?: true
  noAnnotations?: true
  noMetadata?: true
}

/** The template as it goes into the member. Pure: the same template and context give the same bytes. */
export function podTemplateDown(template: PodTemplate, context: PodContext): PodTemplate {
  const out = cloneJson(template)
  const spec = out.spec
  const journal: Journal = { hash: contentHash(template), automount: spec.automountServiceAccountToken ?? null }
  spec.automountServiceAccountToken = false
  if (journal.automount ?? context.accountAutomount ?? true) addApiAccess(spec, context, journal)
  addEnvironment(spec, context, journal)
  fixFields(spec, context, journal)
  fixDownwardVolumes(out, context, journal)
  if (context.nameserver !== undefined) setNameserver(spec, context.nameserver, context.namespace, journal)
  if (out.metadata === undefined) journal.noMetadata = true
  const metadata = (out.metadata ??= {})
  if (metadata.labels === undefined) journal.noLabels = true
  if (metadata.annotations === undefined) journal.noAnnotations = true
  metadata.labels = { ...metadata.labels, [managedLabel]: 'true', [servingLabel]: 'true' }
  metadata.annotations = {
    ...metadata.annotations,
    ...(journal.volumes && { [namespaceAnnotation]: context.namespace }),
    [templateChangesAnnotation]: JSON.stringify(journal),
  }
  return out
}

/** A template, or a pod, as the tenant wrote it. Undoes podTemplateDown; what a member's own admission added stays. */
export function podTemplateUp<T extends PodTemplate>(template: T): T {
  const out = cloneJson(template)
  const text = out.metadata?.annotations?.[templateChangesAnnotation]
  if (text === undefined || out.metadata === undefined) return out
  const journal = JSON.parse(text) as Journal
  const { metadata, spec } = out
  delete metadata.labels?.[managedLabel]
  delete metadata.labels?.[servingLabel]
  delete metadata.annotations?.[templateChangesAnnotation]
  if (journal.volumes) delete metadata.annotations?.[namespaceAnnotation]
  if (journal.noLabels && isEmpty(metadata.labels)) delete metadata.labels
  if (journal.noAnnotations && isEmpty(metadata.annotations)) delete metadata.annotations
  if (journal.noMetadata && isEmpty(metadata)) delete out.metadata
  if (journal.automount === null) delete spec.automountServiceAccountToken
  else spec.automountServiceAccountToken = journal.automount
  removeApiAccess(spec, journal)
  removeEnvironment(spec, journal)
  restoreFields(spec, journal)
  if (journal.volumes) restoreDownwardVolumes(spec)
  if (journal.dns) restoreDns(spec, journal.dns)
  return out
}

/** The content hash of the upstream template that this template, or pod, was made from; undefined where it is not ours. */
export function sourceHash(template: {
  readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> }
}): string | undefined {
  const text = template.metadata?.annotations?.[templateChangesAnnotation]
  return text === undefined ? undefined : (JSON.parse(text) as Journal).hash
}

function containersOf(spec: PodSpec): ContainerSpec[] {
  return [...(spec.initContainers ?? []), ...spec.containers]
}

function addApiAccess(spec: PodSpec, { audience }: PodContext, journal: Journal): void {
  const mounts: string[] = []
  for (const container of containersOf(spec)) {
    if (container.volumeMounts?.some(({ mountPath }) => mountPath === accountDirectory)) continue
    if (container.volumeMounts === undefined) (journal.noMounts ??= []).push(container.name)
    container.volumeMounts = [
      ...(container.volumeMounts ?? []),
      { name: apiAccessVolume, mountPath: accountDirectory, readOnly: true },
    ]
    mounts.push(container.name)
  }
  if (mounts.length === 0) return
  journal.mounts = mounts
  if (spec.volumes === undefined) journal.noVolumes = true
  spec.volumes = [...(spec.volumes ?? []), apiAccess(audience)]
}

function apiAccess(audience: string): VolumeSpec {
  const items = [
    { key: 'ca.crt', path: 'ca.crt' },
    { key: 'namespace', path: 'namespace' },
  ]
  return {
    name: apiAccessVolume,
    projected: {
      defaultMode: 0o644,
      sources: [
        { serviceAccountToken: { audience, expirationSeconds: 3607, path: 'token' } },
        { configMap: { name: rootCaConfigMap, items } },
      ],
    },
  }
}

function removeApiAccess(spec: PodSpec, journal: Journal): void {
  if (journal.mounts === undefined) return
  for (const container of containersOf(spec)) {
    if (!journal.mounts.includes(container.name)) continue
    container.volumeMounts = container.volumeMounts?.filter(({ name }) => name !== apiAccessVolume) ?? []
    if (container.volumeMounts.length === 0 && journal.noMounts?.includes(container.name)) delete container.volumeMounts
  }
  spec.volumes = spec.volumes?.filter(({ name }) => name !== apiAccessVolume) ?? []
  if (spec.volumes.length === 0 && journal.noVolumes) delete spec.volumes
}

/** Before the tenant's own, so that $(KUBERNETES_SERVICE_HOST) can be used in theirs; a tenant's own setting wins. */
function addEnvironment(spec: PodSpec, { apiAddress }: PodContext, journal: Journal): void {
  const env: string[] = []
  for (const container of containersOf(spec)) {
    if (container.env?.some(({ name }) => name === hostName || name === portName)) continue
    if (container.env === undefined) (journal.noEnv ??= []).push(container.name)
    container.env = [
      { name: hostName, value: apiAddress.host },
      { name: portName, value: String(apiAddress.port) },
      ...(container.env ?? []),
    ]
    env.push(container.name)
  }
  if (env.length > 0) journal.env = env
}

function removeEnvironment(spec: PodSpec, journal: Journal): void {
  for (const container of containersOf(spec)) {
    if (!journal.env?.includes(container.name)) continue
    container.env = container.env?.filter(({ name }) => name !== hostName && name !== portName) ?? []
    if (container.env.length === 0 && journal.noEnv?.includes(container.name)) delete container.env
  }
}

function fixFields(spec: PodSpec, { namespace }: PodContext, journal: Journal): void {
  for (const container of containersOf(spec)) {
    for (const variable of container.env ?? []) {
      if (variable.valueFrom?.fieldRef?.fieldPath !== namespaceField) continue
      const { name, valueFrom } = variable
      ;(journal.fields ??= []).push({ container: container.name, name, valueFrom })
      delete variable.valueFrom
      variable.value = namespace
    }
  }
}

function restoreFields(spec: PodSpec, journal: Journal): void {
  for (const { container, name, valueFrom } of journal.fields ?? []) {
    const variable = containersOf(spec)
      .find((candidate) => candidate.name === container)
      ?.env?.find((candidate) => candidate.name === name && candidate.valueFrom === undefined)
    if (variable === undefined) continue
    delete variable.value
    variable.valueFrom = valueFrom as NonNullable<typeof variable.valueFrom>
  }
}

function downwardItems(spec: PodSpec): { fieldRef?: { fieldPath: string } }[] {
  return (spec.volumes ?? []).flatMap(({ downwardAPI, projected }) => [
    ...(downwardAPI?.items ?? []),
    ...(projected?.sources ?? []).flatMap((source) => source.downwardAPI?.items ?? []),
  ])
}

const namespaceByAnnotation = `metadata.annotations['${namespaceAnnotation}']`

function fixDownwardVolumes({ spec }: PodTemplate, _: PodContext, journal: Journal): void {
  for (const { fieldRef } of downwardItems(spec)) {
    if (fieldRef?.fieldPath !== namespaceField) continue
    fieldRef.fieldPath = namespaceByAnnotation
    journal.volumes = true
  }
}

function restoreDownwardVolumes(spec: PodSpec): void {
  for (const { fieldRef } of downwardItems(spec)) {
    if (fieldRef?.fieldPath === namespaceByAnnotation) fieldRef.fieldPath = namespaceField
  }
}

/** Pods with cluster DNS only. In the host's network the source is the node, which tells nothing of the tenant. */
function setNameserver(
  spec: PodSpec,
  { address, domain }: NonNullable<PodContext['nameserver']>,
  namespace: string,
  journal: Journal,
): void {
  if (spec.hostNetwork || (spec.dnsPolicy ?? 'ClusterFirst') !== 'ClusterFirst') return
  journal.dns = { policy: spec.dnsPolicy ?? null, config: spec.dnsConfig ?? null }
  const own = spec.dnsConfig ?? {}
  const options = own.options ?? []
  spec.dnsPolicy = 'None'
  // A pod has at most 3 nameservers and 32 search paths.
  spec.dnsConfig = {
    nameservers: [address, ...(own.nameservers ?? [])].slice(0, 3),
    searches: [...new Set([`${namespace}.${domain}`, domain, ...(own.searches ?? [])])].slice(0, 32),
    options: options.some(({ name }) => name === 'ndots') ? options : [{ name: 'ndots', value: '5' }, ...options],
  }
}

function restoreDns(spec: PodSpec, { policy, config }: NonNullable<Journal['dns']>): void {
  if (policy === null) delete spec.dnsPolicy
  else spec.dnsPolicy = policy
  if (config === null) delete spec.dnsConfig
  else spec.dnsConfig = config as NonNullable<PodSpec['dnsConfig']>
}

function isEmpty(value: object | undefined): boolean {
  return value === undefined || Object.keys(value).length === 0
}
