// Changes pod templates for a member, and undoes the changes in templates and pods of the member. The changes are
// recorded in an annotation of the template, which the member's ReplicaSets and pods have too, so undoing needs only
// the object.
import { parseJsonText } from '#apimachinery/json/index.ts'
import { cloneJson, type ClusterId, type JsonObject, type ObjectMeta } from '#apimachinery/meta/index.ts'
import {
  canonicalJson,
  contentHash,
  isAnnotationForMembers,
  isSystemPriorityClass,
  keptAnnotationPrefix,
  managedLabel,
  namespaceAnnotation,
  namespaceSuffix,
  servingLabel,
  templateChangesAnnotation,
} from '#crds/index.ts'
import { embeddedIn, giveBackAll, withhold, type EmbeddedPath, type Withheld } from './embedded.ts'
import { confineAffinity } from './pod-affinity.ts'
import type { ContainerSpec, PodSpec, PodTemplate, VolumeSpec } from './pod-types.ts'

/** The inputs of a template besides its text. They must be stable: each change causes a rollout of every workload. */
export interface PodContext {
  /** The upstream namespace. */
  readonly namespace: string
  /** `CLUSTERID.MEMBERID`: the audience of tokens, from which the server knows logical cluster and member. */
  readonly audience: string
  /** Address at which pods of the member reach the API of their logical cluster. */
  readonly apiAddress: { readonly host: string; readonly port: number }
  /** Our nameserver in the member, which knows the tenant by the asking pod. Absent: pods use the member's DNS. */
  readonly nameserver?: {
    readonly address: string
    /** The search domain of the logical cluster: `ID.kcp`. */
    readonly domain: string
  }
  /** Prefixes of annotations that the member allows besides the default ones. */
  readonly annotationPrefixes?: readonly string[]
  /** automountServiceAccountToken of the pod's ServiceAccount, if set. */
  readonly accountAutomount?: boolean
  /**
   * The domain name of the pod does not fit into its hostname, because the namespace in the member has a longer name.
   */
  readonly hostnameIsShort?: boolean
  /** The member's PriorityClass for the pod's class; null: the member has none. Absent: the pod keeps its own class. */
  readonly priorityClass?: string | null
  /** The pods must run on no node: their DaemonSet is asleep. */
  readonly isAsleep?: true
}

/** The name of our volume with the token, unless the tenant has a volume of this name. */
export const apiAccessVolume = 'kcp-api-access'
/**
 * ConfigMap in every namespace of a tenant in a member: `ca.crt` of the logical cluster, and the upstream `namespace`.
 */
export const rootCaConfigMap = 'kcp-root-ca'

const accountDirectory = '/var/run/secrets/kubernetes.io/serviceaccount'
const hostName = 'KUBERNETES_SERVICE_HOST'
const portName = 'KUBERNETES_SERVICE_PORT'
const namespaceField = 'metadata.namespace'

interface ReplacedField {
  container: string
  name: string
  valueFrom: unknown
  /** How many variables with a value and this name come before it, because names may repeat; absent: none. */
  before?: number
}

/** The recorded changes. Absent fields mean that nothing was changed. */
interface Changes {
  /** Content hash of the upstream template: the same in every member. */
  hash: string
  /** The tenant's automountServiceAccountToken; null if it was not set. */
  automount: boolean | null
  /** Containers that got the volume mount. */
  mounts?: string[]
  /** The name of our volume, if it is not apiAccessVolume. */
  access?: string
  /** Containers that got the environment variables. */
  env?: string[]
  /** Containers that had no env. */
  noEnv?: string[]
  /** Containers that had no volumeMounts. */
  noMounts?: string[]
  /** The pod had no volumes. */
  noVolumes?: true
  /** The tenant's dnsPolicy and dnsConfig; null if not set. */
  dns?: { policy: string | null; config: unknown }
  /** Variables whose fieldRef metadata.namespace was replaced by a value, with the original valueFrom. */
  fields?: ReplacedField[]
  /** Downward API volumes ask for an annotation instead of metadata.namespace. */
  volumes?: true
  /** Projected tokens that got our audience: volume, index of the source, and the tenant's audience or null. */
  tokens?: { volume: string; source: number; audience: string | null }[]
  /** Projected sources, by volume and index, of which a member gets nothing. */
  sources?: { volume: string; source: number; content: JsonObject }[]
  /** What a member does not get of the claims in volumes. */
  embedded?: { path: EmbeddedPath; withheld: Withheld }[]
  /** Metadata of the template, other than labels and annotations. */
  metadata?: JsonObject
  /** Volumes with the CA of the tenant's API server: the index of the projected source, or null. */
  rootCa?: { volume: string; source: number | null }[]
  /** The tenant's priority fields that the member does not get. */
  priority?: Pick<PodSpec, 'priorityClassName' | 'priority' | 'preemptionPolicy'>
  /** The tenant set setHostnameAsFQDN, and the member does not get this field. */
  fqdn?: true
  /** The tenant's affinity, if terms of it name or select namespaces. */
  affinity?: unknown
  /** The tenant's node selector, or null, of pods that must run on no node. */
  asleep?: { nodeSelector: unknown }
  /** The tenant's annotations that are not for members. */
  annotations?: Readonly<Record<string, string>>
  /** The template had no labels, no annotations, or no metadata. */
  noLabels?: true
  noAnnotations?: true
  noMetadata?: true
}

/** The template for a member. Pure: the same template and context give the same bytes. */
export function podTemplateDown(template: PodTemplate, context: PodContext): PodTemplate {
  const out = cloneJson(template)
  const spec = out.spec
  const changes: Changes = { hash: contentHash(template), automount: spec.automountServiceAccountToken ?? null }
  spec.automountServiceAccountToken = false
  removeSources(spec, changes)
  setTokenAudience(spec, context, changes)
  withholdOfVolumes(spec, context, changes)
  replaceRootCa(spec, changes)
  replacePriority(spec, context, changes)
  if (context.isAsleep) {
    changes.asleep = { nodeSelector: spec['nodeSelector'] ?? null }
    spec['nodeSelector'] = { ...(spec['nodeSelector'] as object | undefined), ...noNode }
  }
  if (context.hostnameIsShort && spec.setHostnameAsFQDN) {
    changes.fqdn = true
    delete spec.setHostnameAsFQDN
  }
  if (confineAffinity(spec, clusterIdOf(context))) changes.affinity = template.spec['affinity']
  if (changes.automount ?? context.accountAutomount ?? true) addApiAccess(spec, context, changes)
  addEnvironment(spec, context, changes)
  replaceFields(out, context, changes)
  replaceDownwardVolumes(out, context, changes)
  if (context.nameserver !== undefined) setNameserver(spec, context.nameserver, context.namespace, changes)
  if (out.metadata === undefined) changes.noMetadata = true
  const metadata = (out.metadata ??= {})
  if (metadata.labels === undefined) changes.noLabels = true
  if (metadata.annotations === undefined) changes.noAnnotations = true
  withholdMetadata(metadata, context, changes)
  metadata.labels = { ...metadata.labels, [managedLabel]: 'true', [servingLabel]: 'true' }
  metadata.annotations = {
    ...metadata.annotations,
    ...annotationsForVolumes(spec, changes),
    ...(changes.volumes && { [namespaceAnnotation]: context.namespace }),
    // Canonical: the order of keys in what a tenant wrote may change when the object is stored, and a changed template
    // is a rollout.
    [templateChangesAnnotation]: canonicalJson(changes),
  }
  return out
}

/** Undoes podTemplateDown in a template or pod. Additions of the member's admission stay. */
export function podTemplateUp<T extends PodTemplate>(template: T): T {
  const out = cloneJson(template)
  const text = out.metadata?.annotations?.[templateChangesAnnotation]
  if (text === undefined || out.metadata === undefined) return out
  const changes = parseJsonText(text) as unknown as Changes
  const { metadata, spec } = out
  delete metadata.labels?.[managedLabel]
  delete metadata.labels?.[servingLabel]
  delete metadata.annotations?.[templateChangesAnnotation]
  if (changes.volumes) delete metadata.annotations?.[namespaceAnnotation]
  restoreAnnotations(metadata, spec, changes)
  Object.assign(metadata, changes.metadata)
  if (changes.noLabels && isEmpty(metadata.labels)) delete metadata.labels
  if (changes.noAnnotations && isEmpty(metadata.annotations)) delete metadata.annotations
  if (changes.noMetadata && isEmpty(metadata)) delete out.metadata
  if (changes.automount === null) delete spec.automountServiceAccountToken
  else spec.automountServiceAccountToken = changes.automount
  removeApiAccess(spec, changes)
  removeEnvironment(spec, changes)
  restoreFields(spec, changes)
  if (changes.volumes) restoreDownwardVolumes(spec)
  restoreTokenAudience(spec, changes)
  restoreSources(spec, changes)
  giveBackAll(spec, changes.embedded ?? [])
  restoreRootCa(spec, changes)
  Object.assign(spec, changes.priority)
  if (changes.fqdn) spec.setHostnameAsFQDN = true
  if (changes.asleep?.nodeSelector === null) delete spec['nodeSelector']
  else if (changes.asleep !== undefined) spec['nodeSelector'] = changes.asleep.nodeSelector
  if (changes.affinity !== undefined) spec['affinity'] = changes.affinity
  if (changes.dns) restoreDns(spec, changes.dns)
  return out
}

/** The content hash of the upstream template of a template or pod in a member; undefined if it is not a copy. */
export function sourceHash(template: {
  readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> }
}): string | undefined {
  const text = template.metadata?.annotations?.[templateChangesAnnotation]
  return text === undefined ? undefined : (parseJsonText(text) as unknown as Changes).hash
}

/** Selects no node: only an admin of the member could give one this label. */
const noNode = { 'kcp.dev/asleep': 'true' }

const clusterIdOf = ({ audience }: PodContext): ClusterId => audience.slice(0, audience.indexOf('.')) as ClusterId

function containersOf(spec: PodSpec): ContainerSpec[] {
  return [...(spec.initContainers ?? []), ...spec.containers]
}

function addApiAccess(spec: PodSpec, { audience }: PodContext, changes: Changes): void {
  const mounts: string[] = []
  const volume = accessVolumeName(spec)
  for (const container of containersOf(spec)) {
    if (container.volumeMounts?.some(({ mountPath }) => mountPath === accountDirectory)) continue
    if (container.volumeMounts === undefined) (changes.noMounts ??= []).push(container.name)
    container.volumeMounts = [
      ...(container.volumeMounts ?? []),
      { name: volume, mountPath: accountDirectory, readOnly: true },
    ]
    mounts.push(container.name)
  }
  if (mounts.length === 0) return
  changes.mounts = mounts
  if (volume !== apiAccessVolume) changes.access = volume
  if (spec.volumes === undefined) changes.noVolumes = true
  spec.volumes = [...(spec.volumes ?? []), apiAccess(volume, audience)]
}

/** The name for our volume: one that no volume of the tenant has. */
function accessVolumeName({ volumes = [] }: PodSpec): string {
  const taken = new Set(volumes.map(({ name }) => name))
  let name = apiAccessVolume
  for (let count = 2; taken.has(name); count++) name = `${apiAccessVolume}-${count}`
  return name
}

function apiAccess(name: string, audience: string): VolumeSpec {
  const items = [
    { key: 'ca.crt', path: 'ca.crt' },
    { key: 'namespace', path: 'namespace' },
  ]
  return {
    name,
    projected: {
      defaultMode: 0o644,
      sources: [
        { serviceAccountToken: { audience, expirationSeconds: 3607, path: 'token' } },
        { configMap: { name: rootCaConfigMap, items } },
      ],
    },
  }
}

function removeApiAccess(spec: PodSpec, changes: Changes): void {
  if (changes.mounts === undefined) return
  const { access = apiAccessVolume } = changes
  for (const container of containersOf(spec)) {
    if (!changes.mounts.includes(container.name)) continue
    container.volumeMounts = container.volumeMounts?.filter(({ name }) => name !== access) ?? []
    if (container.volumeMounts.length === 0 && changes.noMounts?.includes(container.name)) delete container.volumeMounts
  }
  spec.volumes = spec.volumes?.filter(({ name }) => name !== access) ?? []
  if (spec.volumes.length === 0 && changes.noVolumes) delete spec.volumes
}

/**
 * Adds the variables with the address of the API before the tenant's variables, which may use
 * $(KUBERNETES_SERVICE_HOST). Adds none to a container in which the tenant sets one of them.
 */
function addEnvironment(spec: PodSpec, { apiAddress }: PodContext, changes: Changes): void {
  const env: string[] = []
  for (const container of containersOf(spec)) {
    if (container.env?.some(({ name }) => name === hostName || name === portName)) continue
    if (container.env === undefined) (changes.noEnv ??= []).push(container.name)
    container.env = [
      { name: hostName, value: apiAddress.host },
      { name: portName, value: String(apiAddress.port) },
      ...(container.env ?? []),
    ]
    env.push(container.name)
  }
  if (env.length > 0) changes.env = env
}

function removeEnvironment(spec: PodSpec, changes: Changes): void {
  for (const container of containersOf(spec)) {
    if (!changes.env?.includes(container.name)) continue
    container.env = container.env?.filter(({ name }) => name !== hostName && name !== portName) ?? []
    if (container.env.length === 0 && changes.noEnv?.includes(container.name)) delete container.env
  }
}

/** The name in `metadata.annotations['NAME']`. */
function annotationIn(fieldPath: string): string | undefined {
  return /^metadata\.annotations\['(.*)'\]$/.exec(fieldPath)?.[1]
}

/** The value of a variable in the logical cluster; undefined if the member gives the variable the same value. */
function valueUpstream(fieldPath: string, { metadata }: PodTemplate, context: PodContext): string | undefined {
  if (fieldPath === namespaceField) return context.namespace
  const name = annotationIn(fieldPath)
  return name === undefined || isAnnotationForMembers(name, context.annotationPrefixes)
    ? undefined
    : metadata?.annotations?.[name]
}

function replaceFields(template: PodTemplate, context: PodContext, changes: Changes): void {
  const { spec } = template
  for (const container of containersOf(spec)) {
    const withValue = new Map<string, number>()
    for (const variable of container.env ?? []) {
      const { name, valueFrom } = variable
      const path = valueFrom?.fieldRef?.fieldPath
      const value = path === undefined ? undefined : valueUpstream(path, template, context)
      if (value !== undefined) {
        const before = withValue.get(name) ?? 0
        ;(changes.fields ??= []).push({ container: container.name, name, valueFrom, ...(before > 0 && { before }) })
        delete variable.valueFrom
        // Kubernetes expands $(NAME) in `value`, but not in the content of a field.
        variable.value = value.replaceAll('$', () => '$$')
      }
      if (variable.valueFrom === undefined) withValue.set(name, (withValue.get(name) ?? 0) + 1)
    }
  }
}

function restoreFields(spec: PodSpec, changes: Changes): void {
  // In reverse order: the variables before the present one still have values, by which they are counted.
  for (const { container, name, valueFrom, before = 0 } of (changes.fields ?? []).toReversed()) {
    const variable = containersOf(spec)
      .find((candidate) => candidate.name === container)
      ?.env?.filter((candidate) => candidate.name === name && candidate.valueFrom === undefined)[before]
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

function replaceDownwardVolumes({ spec }: PodTemplate, _: PodContext, changes: Changes): void {
  for (const { fieldRef } of downwardItems(spec)) {
    if (fieldRef?.fieldPath !== namespaceField) continue
    fieldRef.fieldPath = namespaceByAnnotation
    changes.volumes = true
  }
}

function restoreDownwardVolumes(spec: PodSpec): void {
  for (const { fieldRef } of downwardItems(spec)) {
    if (fieldRef?.fieldPath === namespaceByAnnotation) fieldRef.fieldPath = namespaceField
  }
}

/** The name under which a member keeps an annotation for volumes of the pod, so that no controller acts on it. */
function keptAnnotation(name: string): string {
  return `${keptAnnotationPrefix}${contentHash(name)}`
}

/** Lets volumes read the removed annotations under other names. Returns these annotations. */
function annotationsForVolumes(spec: PodSpec, { annotations = {} }: Changes): Record<string, string> {
  const kept: Record<string, string> = {}
  for (const { fieldRef } of downwardItems(spec)) {
    const name = fieldRef && annotationIn(fieldRef.fieldPath)
    const value = name === undefined ? undefined : annotations[name]
    if (fieldRef === undefined || name === undefined || value === undefined) continue
    fieldRef.fieldPath = `metadata.annotations['${keptAnnotation(name)}']`
    kept[keptAnnotation(name)] = value
  }
  return kept
}

function restoreAnnotations(metadata: ObjectMeta, spec: PodSpec, { annotations }: Changes): void {
  if (annotations === undefined) return
  const names = new Map(Object.keys(annotations).map((name) => [keptAnnotation(name), name]))
  for (const { fieldRef } of downwardItems(spec)) {
    const name = fieldRef && names.get(annotationIn(fieldRef.fieldPath) ?? '')
    if (fieldRef !== undefined && name !== undefined) fieldRef.fieldPath = `metadata.annotations['${name}']`
  }
  const others = Object.entries(metadata.annotations ?? {}).filter(([name]) => !names.has(name))
  metadata.annotations = { ...Object.fromEntries(others), ...annotations }
}

/**
 * Gives all projected tokens our audience: a token that the member's API server accepts would let a tenant's pod act in
 * the member itself. Our own volume is added later.
 */
function setTokenAudience(spec: PodSpec, { audience }: PodContext, changes: Changes): void {
  for (const { name, projected } of spec.volumes ?? [])
    for (const [source, { serviceAccountToken: token }] of (projected?.sources ?? []).entries()) {
      if (!token || token.audience === audience) continue
      ;(changes.tokens ??= []).push({ volume: name, source, audience: token.audience ?? null })
      token.audience = audience
    }
}

/**
 * The sources of projected volumes that mean the same in a member. A certificate, for one, may be valid for the
 * member's own API.
 */
const knownSources: ReadonlySet<string> = new Set(['configMap', 'downwardAPI', 'secret', 'serviceAccountToken'])

function removeSources(spec: PodSpec, changes: Changes): void {
  for (const { name, projected } of spec.volumes ?? [])
    for (const [source, content] of (projected?.sources ?? []).entries()) {
      const others = Object.entries(content).filter(([kind]) => !knownSources.has(kind))
      if (others.length === 0) continue
      ;(changes.sources ??= []).push({ volume: name, source, content: Object.fromEntries(others) as JsonObject })
      for (const [kind] of others) Reflect.deleteProperty(content, kind)
    }
}

function restoreSources(spec: PodSpec, { sources = [] }: Changes): void {
  for (const { volume, source, content } of sources) {
    const present = spec.volumes?.find(({ name }) => name === volume)?.projected?.sources?.[source]
    if (present !== undefined) Object.assign(present, content)
  }
}

/** Removes what a member does not get from the claims in volumes of the pod, and records it. */
function withholdOfVolumes(spec: PodSpec, { annotationPrefixes }: PodContext, changes: Changes): void {
  for (const one of embeddedIn(spec)) {
    const withheld = withhold(one, annotationPrefixes)
    if (withheld !== undefined) (changes.embedded ??= []).push({ path: one.path, withheld })
  }
}

function restoreTokenAudience(spec: PodSpec, { tokens = [] }: Changes): void {
  for (const { volume, source, audience } of tokens) {
    const token = spec.volumes?.find(({ name }) => name === volume)?.projected?.sources?.[source]?.serviceAccountToken
    if (token === undefined) continue
    if (audience === null) delete token.audience
    else token.audience = audience
  }
}

const clusterRootCa = 'kube-root-ca.crt'

/** In a member the ConfigMap `kube-root-ca.crt` has the CA of the member. */
function replaceRootCa(spec: PodSpec, changes: Changes): void {
  for (const [volume, source, config] of rootCaVolumes(spec)) {
    if (config.name !== clusterRootCa) continue
    ;(changes.rootCa ??= []).push({ volume, source })
    config.name = rootCaConfigMap
  }
}

function restoreRootCa(spec: PodSpec, { rootCa = [] }: Changes): void {
  for (const [volume, source, config] of rootCaVolumes(spec))
    if (rootCa.some((one) => one.volume === volume && one.source === source)) config.name = clusterRootCa
}

function rootCaVolumes(spec: PodSpec): [string, number | null, { name?: string }][] {
  return (spec.volumes ?? []).flatMap(({ name, configMap, projected }) => [
    ...(configMap ? [[name, null, configMap] as [string, null, { name?: string }]] : []),
    ...(projected?.sources ?? []).flatMap((source, index): [string, number, { name?: string }][] =>
      source.configMap ? [[name, index, source.configMap]] : [],
    ),
  ])
}

/**
 * Replaces the priority of the pod: pods of the system classes would preempt pods of the member itself, and the class
 * of the tenant has another name in the member. The member's admission sets the number of the priority.
 */
function replacePriority(spec: PodSpec, { priorityClass }: PodContext, changes: Changes): void {
  const { priorityClassName, priority, preemptionPolicy } = spec
  const isSystem = isSystemPriorityClass(priorityClassName)
  const mapped = isSystem || priorityClass === null ? undefined : (priorityClass ?? priorityClassName)
  const isOther = mapped !== priorityClassName
  const removed = {
    ...(isOther && { priorityClassName }),
    ...(priority !== undefined && { priority }),
    ...((isOther || priority !== undefined) && preemptionPolicy !== undefined && { preemptionPolicy }),
  }
  if (Object.keys(removed).length === 0) return
  changes.priority = removed
  for (const field of Object.keys(removed)) Reflect.deleteProperty(spec, field)
  if (mapped !== undefined) spec.priorityClassName = mapped
}

function withholdMetadata(metadata: ObjectMeta, { annotationPrefixes }: PodContext, changes: Changes): void {
  const withheld = withhold({ kind: 'Pod', object: { metadata: metadata as JsonObject } }, annotationPrefixes)
  if (withheld?.annotations !== undefined) changes.annotations = withheld.annotations
  if (withheld?.metadata !== undefined) changes.metadata = withheld.metadata
}

/** The nameserver does not answer a pod before it knows the pod's address, so resolvers ask again after a second. */
const resolverOptions = [
  { name: 'ndots', value: '5' },
  { name: 'timeout', value: '1' },
  { name: 'attempts', value: '5' },
]

/**
 * Sets the nameserver of a pod that uses cluster DNS. With hostNetwork the source address of a query is the node's, by
 * which the nameserver cannot tell the tenant.
 */
function setNameserver(
  spec: PodSpec,
  { address, domain }: NonNullable<PodContext['nameserver']>,
  namespace: string,
  changes: Changes,
): void {
  if (spec.hostNetwork || (spec.dnsPolicy ?? 'ClusterFirst') !== 'ClusterFirst') return
  changes.dns = { policy: spec.dnsPolicy ?? null, config: spec.dnsConfig ?? null }
  const own = spec.dnsConfig ?? {}
  const options = own.options ?? []
  const missing = resolverOptions.filter(({ name }) => options.every((option) => option.name !== name))
  spec.dnsPolicy = 'None'
  // A pod has at most 3 nameservers and 32 search paths.
  spec.dnsConfig = {
    nameservers: [address, ...(own.nameservers ?? [])].slice(0, 3),
    searches: [...new Set([`${namespaceSuffix(namespace)}.${domain}`, domain, ...(own.searches ?? [])])].slice(0, 32),
    options: [...missing, ...options],
  }
}

function restoreDns(spec: PodSpec, { policy, config }: NonNullable<Changes['dns']>): void {
  if (policy === null) delete spec.dnsPolicy
  else spec.dnsPolicy = policy
  if (config === null) delete spec.dnsConfig
  else spec.dnsConfig = config as NonNullable<PodSpec['dnsConfig']>
}

function isEmpty(value: object | undefined): boolean {
  return value === undefined || Object.keys(value).length === 0
}
