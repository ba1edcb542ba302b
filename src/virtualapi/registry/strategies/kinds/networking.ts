// Ingresses, IngressClasses and NetworkPolicies.
import { isIP } from 'node:net'
import type {
  V1IngressBackend,
  V1IngressSpec,
  V1NetworkPolicyPeer,
  V1NetworkPolicyPort,
  V1NetworkPolicySpec,
} from '@kubernetes/client-node'
import {
  dns1123SubdomainErrors,
  fieldForbidden,
  fieldInvalid,
  fieldNotSupported,
  fieldRequired,
  regexText,
} from '../../../../apimachinery/field/index.ts'
import type { StatusCause } from '../../../../apimachinery/status/index.ts'
import type { KindRules } from '../kind-rules.ts'
import type { Data } from '../typed/data.ts'
import { labelSelectorCauses } from '../validation/label-selector.ts'
import { cidr, oneOf, portNumber, portOrName, required, subdomain } from '../validation/values.ts'

const wildcardText = regexText(
  "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
  '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*',
  '*.example.com',
)

function hostCauses(path: string, host: string): StatusCause[] {
  if (!host.includes('*')) return subdomain(path, host)
  const good = host.startsWith('*.') && dns1123SubdomainErrors(host.slice(2)).length === 0
  return good ? [] : [fieldInvalid(path, host, wildcardText)]
}

function backendCauses(path: string, { service, resource }: Data<V1IngressBackend>): StatusCause[] {
  if (service !== undefined && resource !== undefined)
    return [fieldInvalid(path, '', 'cannot set both resource and service backends')]
  if (resource !== undefined)
    return [...required(`${path}.resource.name`, resource.name), ...required(`${path}.resource.kind`, resource.kind)]
  if (service === undefined) return [fieldInvalid(path, '', 'resource or service backend is required')]
  const causes = service.name === '' ? [fieldRequired(`${path}.service.name`)] : []
  const { name, number } = service.port ?? {}
  if (name && number) causes.push(fieldInvalid(path, '', 'cannot set both port name & port number'))
  else if (name) causes.push(...portOrName(`${path}.service.port.name`, name))
  else if (number) causes.push(...portNumber(`${path}.service.port.number`, number))
  else causes.push(fieldRequired(path, 'port name or number is required'))
  return causes
}

export const ingressRules: KindRules = {
  validate(object) {
    const { rules = [], defaultBackend, tls = [], ingressClassName } = object['spec'] as Data<V1IngressSpec>
    const causes: StatusCause[] = []
    if (rules.length === 0 && defaultBackend === undefined)
      causes.push(fieldInvalid('spec', null, 'either `defaultBackend` or `rules` must be specified'))
    if (defaultBackend !== undefined) causes.push(...backendCauses('spec.defaultBackend', defaultBackend))
    for (const [index, { host, http }] of rules.entries()) {
      const at = `spec.rules[${index}]`
      if (host)
        causes.push(
          ...(isIP(host) === 0
            ? hostCauses(`${at}.host`, host)
            : [fieldInvalid(`${at}.host`, host, 'must be a DNS name, not an IP address')]),
        )
      if (http === undefined) continue
      const paths = http.paths as typeof http.paths | null
      if (!paths?.length) causes.push(fieldRequired(`${at}.http.paths`))
      else causes.push(...paths.flatMap((item, i) => ingressPathCauses(`${at}.http.paths[${i}]`, item)))
    }
    for (const [index, { hosts }] of tls.entries())
      for (const [i, host] of (hosts ?? []).entries())
        causes.push(...hostCauses(`spec.tls[${index}].hosts[${i}]`, host))
    if (ingressClassName !== undefined) causes.push(...subdomain('spec.ingressClassName', ingressClassName))
    return causes
  },
}

type IngressPath = NonNullable<NonNullable<Data<V1IngressSpec>['rules']>[number]['http']>['paths'][number]

function ingressPathCauses(at: string, { path = '', pathType, backend }: IngressPath): StatusCause[] {
  const causes: StatusCause[] = []
  const type = pathType as string | null
  if (type === null || type === '') return [fieldRequired(`${at}.pathType`, 'pathType must be specified')]
  if (type === 'Exact' || type === 'Prefix') {
    if (!path.startsWith('/')) causes.push(fieldInvalid(`${at}.path`, path, 'must be an absolute path'))
    if (path !== '')
      for (const bad of ['//', '/./', '/../', '%2f', '%2F'])
        if (path.includes(bad)) causes.push(fieldInvalid(`${at}.path`, path, `must not contain '${bad}'`))
    for (const bad of ['/..', '/.'])
      if (path.endsWith(bad)) causes.push(fieldInvalid(`${at}.path`, path, `cannot end with '${bad}'`))
  } else if (type === 'ImplementationSpecific') {
    if (path !== '' && !path.startsWith('/')) causes.push(fieldInvalid(`${at}.path`, path, 'must be an absolute path'))
  } else causes.push(fieldNotSupported(`${at}.pathType`, type, ['Exact', 'ImplementationSpecific', 'Prefix']))
  return [...causes, ...backendCauses(`${at}.backend`, backend)]
}

export const ingressClassRules: KindRules = {
  validate(object) {
    const { controller = '', parameters } = object['spec'] as {
      controller?: string
      parameters?: { kind: string; name: string }
    }
    const causes: StatusCause[] = []
    if (controller !== '' && !/^[^/]+\/.+/.test(controller))
      causes.push(fieldInvalid('spec.controller', controller, 'must be a domain-prefixed path (such as "acme.io/foo")'))
    if (parameters === undefined) return causes
    return [
      ...causes,
      ...required('spec.parameters.kind', parameters.kind),
      ...required('spec.parameters.name', parameters.name),
    ]
  },
  validateChange(object, old) {
    const controller = (of: typeof object): string => (of['spec'] as { controller?: string }).controller ?? ''
    return controller(object) === controller(old)
      ? []
      : [fieldInvalid('spec.controller', controller(object), 'field is immutable')]
  },
}

export const networkPolicyRules: KindRules = {
  validate(object) {
    const { podSelector, ingress = [], egress = [], policyTypes = [] } = object['spec'] as Data<V1NetworkPolicySpec>
    return [
      ...labelSelectorCauses('spec.podSelector', podSelector),
      ...ingress.flatMap(({ ports, from }, index) => [
        ...(ports ?? []).flatMap((port, i) => policyPortCauses(`spec.ingress[${index}].ports[${i}]`, port)),
        ...(from ?? []).flatMap((peer, i) => peerCauses(`spec.ingress[${index}].from[${i}]`, peer)),
      ]),
      ...egress.flatMap(({ ports, to }, index) => [
        ...(ports ?? []).flatMap((port, i) => policyPortCauses(`spec.egress[${index}].ports[${i}]`, port)),
        ...(to ?? []).flatMap((peer, i) => peerCauses(`spec.egress[${index}].to[${i}]`, peer)),
      ]),
      ...policyTypes.flatMap((type, index) => oneOf(`spec.policyTypes[${index}]`, type, ['Ingress', 'Egress'])),
    ]
  },
}

function policyPortCauses(path: string, { port, protocol, endPort }: Data<V1NetworkPolicyPort>): StatusCause[] {
  const causes = oneOf(`${path}.protocol`, protocol, ['TCP', 'UDP', 'SCTP'])
  const at = `${path}.endPort`
  if (port !== undefined) causes.push(...portOrName(`${path}.port`, port))
  if (endPort === undefined) return causes
  if (port === undefined) causes.push(fieldInvalid(at, endPort, 'may not be specified when `port` is not specified'))
  else if (typeof port === 'string')
    causes.push(fieldInvalid(at, endPort, 'may not be specified when `port` is non-numeric'))
  else {
    // Upstream shows the port here.
    if (endPort < port) causes.push(fieldInvalid(at, port, 'must be greater than or equal to `port`'))
    causes.push(...portNumber(at, endPort))
  }
  return causes
}

function peerCauses(
  path: string,
  { ipBlock, podSelector, namespaceSelector }: Data<V1NetworkPolicyPeer>,
): StatusCause[] {
  const causes = [
    ...labelSelectorCauses(`${path}.podSelector`, podSelector),
    ...labelSelectorCauses(`${path}.namespaceSelector`, namespaceSelector),
  ]
  if (ipBlock !== undefined) causes.push(...blockCauses(`${path}.ipBlock`, ipBlock))
  if (!ipBlock && !podSelector && !namespaceSelector) causes.push(fieldRequired(path, 'must specify a peer'))
  if (ipBlock && (podSelector || namespaceSelector))
    causes.push(fieldForbidden(path, 'may not specify both ipBlock and another peer'))
  return causes
}

function blockCauses(path: string, { cidr: outer, except = [] }: { cidr: string; except?: string[] }): StatusCause[] {
  if (outer === '') return [fieldRequired(`${path}.cidr`)]
  const causes = cidr(`${path}.cidr`, outer)
  if (causes.length > 0) return causes
  return except.flatMap((inner, index) => {
    const at = `${path}.except[${index}]`
    const wrong = cidr(at, inner)
    if (wrong.length > 0) return wrong
    return isInside(inner, outer) ? [] : [fieldInvalid(at, inner, 'must be a strict subset of `cidr`')]
  })
}

/** IPv4 blocks are compared; of IPv6 ones only the length is. */
function isInside(inner: string, outer: string): boolean {
  const [innerIp = '', innerBits = '0'] = inner.split('/')
  const [outerIp = '', outerBits = '0'] = outer.split('/')
  if (isIP(innerIp) !== isIP(outerIp) || Number(innerBits) <= Number(outerBits)) return false
  if (isIP(outerIp) === 6) return true
  const number = (ip: string): number => ip.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
  const shift = 2 ** (32 - Number(outerBits))
  return Math.floor(number(innerIp) / shift) === Math.floor(number(outerIp) / shift)
}
