// Kinds that report: Leases, Events, EndpointSlices, Endpoints, Nodes, CertificateSigningRequests, webhooks, RuntimeClasses.
import { isIP } from 'node:net'
import type { V1EndpointSlice, V1LeaseSpec, V1NodeSpec, V1NodeStatus, V1Endpoints } from '@kubernetes/client-node'
import {
  dns1123LabelErrors,
  fieldDuplicate,
  fieldForbidden,
  fieldInvalid,
  fieldRequired,
  labelValueErrors,
} from '../../../../apimachinery/field/index.ts'
import { isDeepStrictEqual } from 'node:util'
import { isJsonObject, type KubeObject } from '../../../../apimachinery/meta/index.ts'
import type { StatusCause } from '../../../../apimachinery/status/index.ts'
import { webhookClientCauses } from '../../webhook-client.ts'
import type { KindRules } from '../kind-rules.ts'
import type { Data } from '../typed/data.ts'
import { nonNegativeQuantity } from '../validation/resources.ts'
import { taintEffects } from '../validation/scheduling.ts'
import {
  cidr,
  fieldImmutable,
  ipAddress,
  label,
  nonNegative,
  oneOf,
  portNumber,
  protocols,
  qualifiedName,
  requiredOneOf,
  routableIp,
  subdomain,
} from '../validation/values.ts'

export const leaseRules: KindRules = {
  beforeDefaults: (object) => dropFromSpec(object, ['strategy', 'preferredHolder']),
  validate(object) {
    const { leaseDurationSeconds, leaseTransitions } = object['spec'] as Data<V1LeaseSpec>
    return [
      ...(leaseDurationSeconds !== undefined && leaseDurationSeconds <= 0
        ? [fieldInvalid('spec.leaseDurationSeconds', leaseDurationSeconds, 'must be greater than 0')]
        : []),
      ...nonNegative('spec.leaseTransitions', leaseTransitions),
    ]
  },
}

/** Members that the default feature gates of a real server drop. */
export function dropFromSpec({ spec }: KubeObject, members: readonly string[]): void {
  if (isJsonObject(spec)) for (const member of members) Reflect.deleteProperty(spec, member)
}

export const csiDriverRules: KindRules = {
  beforeDefaults: (object) => dropFromSpec(object, ['nodeAllocatableUpdatePeriodSeconds']),
  prepareForUpdate(object, old) {
    // New ones have no generation; the first change makes it one.
    if (!isDeepStrictEqual(object['spec'], old['spec'])) object.metadata.generation = (old.metadata.generation ?? 0) + 1
  },
}

export const eventRules: KindRules = {
  validate({ involvedObject, metadata, eventTime }) {
    // Events of the newer form are checked in another way, which does not ask for this.
    if (eventTime !== null && eventTime !== undefined) return []
    const about = (involvedObject as { namespace?: string }).namespace ?? ''
    const own = metadata.namespace ?? ''
    const wrong = about === '' ? own !== 'default' && own !== 'kube-system' : about !== own
    return wrong ? [fieldInvalid('involvedObject.namespace', about, 'does not match event.namespace')] : []
  },
}

type Slice = Data<V1EndpointSlice> & KubeObject

export const endpointSliceRules: KindRules = {
  countsChange({ metadata: { labels }, ...next }, { metadata: { labels: before }, ...old }) {
    return !isDeepStrictEqual(next, old) || !isDeepStrictEqual(labels ?? {}, before ?? {})
  },
  validate(object) {
    const slice = object as unknown as Slice
    const { addressType } = slice
    const endpoints = (slice.endpoints as Slice['endpoints'] | null) ?? []
    const names = new Set<string>()
    const causes = requiredOneOf('addressType', addressType, ['FQDN', 'IPv4', 'IPv6'])
    for (const [index, { name = '', protocol, port }] of (slice.ports ?? []).entries()) {
      const at = `ports[${index}]`
      if (name !== '') causes.push(...dns1123LabelErrors(name).map((text) => fieldInvalid(`${at}.name`, name, text)))
      if (names.has(name)) causes.push(fieldDuplicate(`${at}.name`, name))
      names.add(name)
      causes.push(...requiredOneOf(`${at}.protocol`, protocol, protocols))
      if (port !== undefined) causes.push(...portNumber(`${at}.port`, port))
    }
    for (const [index, { addresses }] of endpoints.entries()) {
      const at = `endpoints[${index}].addresses`
      const list = (addresses as string[] | null) ?? []
      if (list.length === 0) causes.push(fieldRequired(at, 'must contain at least 1 address'))
      for (const [i, address] of list.entries()) causes.push(...addressCauses(at, i, address, addressType))
    }
    return causes
  },
  validateChange(object, old) {
    const { addressType } = object as unknown as Slice
    return addressType === old['addressType'] ? [] : [fieldInvalid('addressType', addressType, fieldImmutable)]
  },
}

function addressCauses(path: string, index: number, address: string, type: string): StatusCause[] {
  const at = `${path}[${index}]`
  if (type === 'FQDN') return subdomain(at, address)
  if (type !== 'IPv4' && type !== 'IPv6') return []
  const wrong = ipAddress(at, address)
  if (wrong.length > 0) return wrong
  const family = type === 'IPv4' ? 4 : 6
  return [
    ...(isIP(address) === family ? [] : [fieldInvalid(path, address, `must be an ${type} address`)]),
    ...routableIp(at, address),
  ]
}

function nodeStatusCauses({ status }: Node): StatusCause[] {
  const seen = new Set<string>()
  const { addresses = [], capacity = {}, allocatable = {} } = status
  const repeated = addresses.flatMap(({ type, address }, index) => {
    const shown = JSON.stringify({ Type: type, Address: address })
    if (seen.has(shown)) return [duplicateText(`status.addresses[${index}]`, shown)]
    seen.add(shown)
    return []
  })
  return [
    ...repeated,
    ...Object.entries(capacity).flatMap(([name, text]) => nonNegativeQuantity(`status.capacity.${name}`, text)),
    ...Object.entries(allocatable).flatMap(([name, text]) => nonNegativeQuantity(`status.allocatable.${name}`, text)),
  ]
}

function duplicateText(field: string, shown: string): StatusCause {
  return { reason: 'FieldValueDuplicate', message: `Duplicate value: ${shown}`, field }
}

export const endpointsRules: KindRules = {
  validate(object) {
    const { subsets = [] } = object as unknown as Data<V1Endpoints>
    return subsets.flatMap(({ addresses = [], notReadyAddresses = [], ports = [] }, index) => {
      const at = `subsets[${index}]`
      const causes: StatusCause[] = []
      if (addresses.length === 0 && notReadyAddresses.length === 0)
        causes.push(fieldRequired(at, 'must specify `addresses` or `notReadyAddresses`'))
      for (const [member, list] of Object.entries({ addresses, notReadyAddresses }))
        for (const [i, { ip }] of list.entries()) causes.push(...endpointIpCauses(`${at}.${member}[${i}].ip`, ip))
      for (const [i, { name, port, protocol }] of ports.entries()) {
        if (name) causes.push(...label(`${at}.ports[${i}].name`, name))
        else if (ports.length > 1) causes.push(fieldRequired(`${at}.ports[${i}].name`))
        causes.push(
          ...portNumber(`${at}.ports[${i}].port`, port),
          ...requiredOneOf(`${at}.ports[${i}].protocol`, protocol, protocols),
        )
      }
      return causes
    })
  },
}

function endpointIpCauses(path: string, ip: string): StatusCause[] {
  const wrong = ipAddress(path, ip)
  // Upstream asks twice.
  return wrong.length > 0 ? [...wrong, fieldInvalid(path, ip, 'must be a valid IP address')] : routableIp(path, ip)
}

const notReady = 'node.kubernetes.io/not-ready'

interface Node extends KubeObject {
  spec: Data<V1NodeSpec>
  status: Data<V1NodeStatus>
}

export const nodeRules: KindRules = {
  bornWithStatus: true,
  beforeDefaults(object) {
    const { spec, status } = object as Partial<Node>
    if (spec !== undefined) {
      const { podCIDR, podCIDRs = [] } = spec
      if (podCIDR && podCIDRs.length === 0) spec.podCIDRs = [podCIDR]
      else if (podCIDRs[0] !== undefined && podCIDR !== podCIDRs[0]) spec.podCIDR = podCIDRs[0]
    }
    if (status?.capacity !== undefined && status.allocatable === undefined) status.allocatable = { ...status.capacity }
  },
  prepareForCreate(object) {
    const { spec, status } = object as Node
    delete spec.configSource
    delete status.config
    const { taints = [] } = spec
    // Who makes nodes ready takes it away.
    if (!taints.some(({ key, effect }) => key === notReady && effect === 'NoSchedule'))
      spec.taints = [...taints, { key: notReady, effect: 'NoSchedule' }]
  },
  validatePart: (object) => nodeStatusCauses(object as Node),
  validate(object) {
    const { taints = [], podCIDRs = [] } = object['spec'] as Data<V1NodeSpec>
    return [
      ...taints.flatMap(({ key, value = '', effect }, index) => {
        const at = `metadata.taints[${index}]`
        return [
          ...qualifiedName(`${at}.key`, key),
          ...labelValueErrors(value).map((text) => fieldInvalid(`${at}.value`, value, text)),
          ...requiredOneOf(`${at}.effect`, effect, taintEffects),
        ]
      }),
      ...podCIDRs.flatMap((range, index) => cidr(`spec.podCIDRs[${index}]`, range)),
      ...nodeStatusCauses(object as Node),
    ]
  },
  validateChange(object, old) {
    const next = object['spec'] as Data<V1NodeSpec>
    const before = old['spec'] as Data<V1NodeSpec>
    const causes: StatusCause[] = []
    if (before.providerID !== undefined && next.providerID !== before.providerID)
      causes.push(fieldForbidden('spec.providerID', 'node updates may not change providerID except from "" to valid'))
    if (before.podCIDRs?.length && !isDeepStrictEqual(next.podCIDRs, before.podCIDRs))
      causes.push(fieldForbidden('spec.podCIDRs', 'node updates may not change podCIDR except from "" to valid'))
    return causes
  },
}

/** Who asks for a certificate is told by the server, and nobody approves at birth. */
export const certificateRequestRules: KindRules = {
  prepareForCreate(object, { user }) {
    const { username: _u, uid: _i, groups: _g, extra: _e, ...spec } = object['spec'] as Record<string, unknown>
    object['spec'] = {
      ...spec,
      username: user.name,
      ...(user.uid === undefined ? {} : { uid: user.uid }),
      ...(user.groups.length > 0 ? { groups: [...user.groups] } : {}),
      ...(Object.keys(user.extra).length > 0 ? { extra: structuredClone(user.extra) } : {}),
    }
    object['status'] = {}
  },
  prepareForUpdate(object, old) {
    object['spec'] = structuredClone(old['spec'])
  },
  validate(object) {
    const { request, usages, signerName } = object['spec'] as { request: string; usages?: string[]; signerName: string }
    const causes: StatusCause[] = []
    const text = Buffer.from(request, 'base64').toString()
    if (!/-----BEGIN CERTIFICATE REQUEST-----[\s\S]+-----END CERTIFICATE REQUEST-----/.test(text))
      causes.push(fieldInvalid('spec.request', request, 'PEM block type must be CERTIFICATE REQUEST'))
    if (!usages?.length) causes.push(fieldRequired('spec.usages'))
    if (signerName === '') causes.push(fieldRequired('spec.signerName'))
    else if (!/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?\.[a-z0-9.-]+\/[^/]+/.test(signerName))
      causes.push(
        fieldInvalid(
          'spec.signerName',
          signerName,
          "must be a fully qualified domain and path of the form 'example.com/signer-name'",
        ),
      )
    return causes
  },
}

export const runtimeClassRules: KindRules = {
  validate: (object) => label('handler', (object['handler'] as string | undefined) ?? ''),
  validateChange: (object, old) =>
    object['handler'] === old['handler']
      ? []
      : [fieldInvalid('handler', (object['handler'] as string | undefined) ?? '', fieldImmutable)],
}

interface Webhook {
  name: string
  clientConfig: { url?: string; service?: { namespace: string; name: string; path?: string; port?: number } }
  rules?: Record<'operations' | 'apiGroups' | 'apiVersions' | 'resources', string[] | undefined>[] &
    { scope?: string }[]
  failurePolicy?: string
  matchPolicy?: string
  sideEffects: string | null
  timeoutSeconds?: number
  admissionReviewVersions: string[] | null
  reinvocationPolicy?: string
}

const operations = ['*', 'CONNECT', 'CREATE', 'DELETE', 'UPDATE']

/** Of both kinds of webhook configurations. */
export const webhookRules: KindRules = {
  validate(object) {
    const webhooks = (object['webhooks'] as Webhook[] | undefined) ?? []
    const names = new Set<string>()
    return webhooks.flatMap((webhook, index) => {
      const at = `webhooks[${index}]`
      const causes = webhookCauses(at, webhook)
      if (names.has(webhook.name)) causes.push(fieldDuplicate(`${at}.name`, webhook.name))
      names.add(webhook.name)
      return causes
    })
  },
}

function webhookCauses(path: string, webhook: Webhook): StatusCause[] {
  const { name, clientConfig, rules = [], timeoutSeconds, sideEffects, admissionReviewVersions } = webhook
  const named = subdomain(`${path}.name`, name)
  const causes: StatusCause[] = []
  if (name === '') causes.push(fieldRequired(`${path}.name`))
  else if (named.length > 0) causes.push(...named)
  else if (name.split('.').length < 3)
    causes.push(fieldInvalid(`${path}.name`, name, 'should be a domain with at least three segments separated by dots'))
  for (const [index, rule] of rules.entries()) causes.push(...webhookRuleCauses(`${path}.rules[${index}]`, rule))
  causes.push(
    ...oneOf(`${path}.failurePolicy`, webhook.failurePolicy, ['Fail', 'Ignore']),
    ...oneOf(`${path}.matchPolicy`, webhook.matchPolicy, ['Equivalent', 'Exact']),
    ...oneOf(`${path}.reinvocationPolicy`, webhook.reinvocationPolicy, ['IfNeeded', 'Never']),
    ...(sideEffects === null
      ? [fieldRequired(`${path}.sideEffects`, 'must specify one of None, NoneOnDryRun')]
      : oneOf(`${path}.sideEffects`, sideEffects, ['None', 'NoneOnDryRun'])),
  )
  if (timeoutSeconds !== undefined && (timeoutSeconds < 1 || timeoutSeconds > 30))
    causes.push(
      fieldInvalid(`${path}.timeoutSeconds`, timeoutSeconds, 'the timeout value must be between 1 and 30 seconds'),
    )
  causes.push(...webhookClientCauses(`${path}.clientConfig`, clientConfig))
  if (!admissionReviewVersions?.length)
    causes.push(fieldRequired(`${path}.admissionReviewVersions`, 'must specify one of v1, v1beta1'))
  return causes
}

function webhookRuleCauses(path: string, rule: NonNullable<Webhook['rules']>[number]): StatusCause[] {
  const causes: StatusCause[] = []
  const star = (member: 'operations' | 'apiGroups' | 'apiVersions', what: string): void => {
    const list = rule[member] ?? []
    if (list.length === 0) causes.push(fieldRequired(`${path}.${member}`))
    if (list.length > 1 && list.includes('*'))
      causes.push(fieldInvalid(`${path}.${member}`, list, `if '*' is present, must not specify other ${what}`))
  }
  star('operations', 'operations')
  for (const [index, operation] of (rule.operations ?? []).entries())
    causes.push(...oneOf(`${path}.operations[${index}]`, operation, operations))
  star('apiGroups', 'API groups')
  star('apiVersions', 'API versions')
  if (!rule.resources?.length) causes.push(fieldRequired(`${path}.resources`))
  return [...causes, ...oneOf(`${path}.scope`, rule.scope, ['*', 'Cluster', 'Namespaced'])]
}
