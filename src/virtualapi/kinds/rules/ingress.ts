// Ingresses: hosts, paths and backends.
import type { V1IngressBackend, V1IngressSpec, V1TypedLocalObjectReference } from '@kubernetes/client-node'
import {
  dns1035LabelErrors,
  dns1123LabelErrors,
  dns1123SubdomainErrors,
  fieldInvalid,
  fieldNotSupported,
  fieldRequired,
  maxLengthText,
  regexText,
} from '#apimachinery/field/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { pathSegmentName } from '#virtualapi/kinds/resources/names.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { tryIp } from '#virtualapi/kinds/validation/ip-values.ts'
import { portNumber, portOrName, required, subdomain } from '#virtualapi/kinds/validation/values.ts'
import { loadBalancerWarnings } from './service-warnings.ts'

type Spec = Data<V1IngressSpec>

const wildcardText = regexText(
  "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
  '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*',
  '*.example.com',
)
const classAnnotation = 'kubernetes.io/ingress.class'
const pathTypes = ['Exact', 'ImplementationSpecific', 'Prefix']

/** Mistakes that an update may keep because the stored object already has them. */
interface Leniency {
  readonly secretNames: boolean
  readonly wildcardRules: boolean
  readonly serviceNames: boolean
}

const strict: Leniency = { secretNames: false, wildcardRules: false, serviceNames: false }

export const ingressRules: KindRules = {
  statusWarningsOf: ({ status }) => loadBalancerWarnings(status),
  validate(object, old) {
    const spec = object['spec'] as Spec
    const causes = specCauses(spec, old === undefined ? strict : leniencyFor(old['spec'] as Spec))
    return old === undefined ? [...causes, ...classCauses(object)] : causes
  },
  warningsOf: ({ metadata, spec }, old) =>
    old === undefined &&
    metadata.annotations?.[classAnnotation] !== undefined &&
    (spec as Spec).ingressClassName === undefined
      ? [`annotation ${JSON.stringify(classAnnotation)} is deprecated, please use 'spec.ingressClassName' instead`]
      : [],
}

function leniencyFor({ tls = [], rules = [] }: Spec): Leniency {
  const services = rules.flatMap(({ http }) =>
    (http?.paths ?? []).flatMap(({ backend }) => backend.service?.name ?? []),
  )
  return {
    secretNames: tls.some(({ secretName }) => secretName && dns1123SubdomainErrors(secretName).length > 0),
    wildcardRules: rules.some(({ host, http }) => host?.includes('*') && httpCauses('', http, strict).length > 0),
    serviceNames: services.some((name) => dns1035LabelErrors(name).length > 0 && dns1123LabelErrors(name).length === 0),
  }
}

/** If class annotation and ingressClassName are both set, they must be equal. */
function classCauses({ metadata, spec }: KubeObject): StatusCause[] {
  const { ingressClassName: name } = spec as Spec
  const annotation = metadata.annotations?.[classAnnotation]
  if (annotation === undefined || name === undefined || annotation === name) return []
  return [
    fieldInvalid(`annotations.${classAnnotation}`, annotation, 'must match `ingressClassName` when both are specified'),
  ]
}

function specCauses(spec: Spec, lenient: Leniency): StatusCause[] {
  const { rules = [], defaultBackend, tls = [], ingressClassName } = spec
  return [
    ...(rules.length === 0 && defaultBackend === undefined
      ? [fieldInvalid('spec', null, 'either `defaultBackend` or `rules` must be specified')]
      : []),
    ...(defaultBackend === undefined ? [] : backendCauses('spec.defaultBackend', defaultBackend, lenient)),
    ...rules.flatMap((rule, index) => ruleCauses(`spec.rules[${index}]`, rule, lenient)),
    ...tls.flatMap(({ hosts, secretName }, index) => [
      ...(hosts ?? []).flatMap((host, i) => hostCauses(`spec.tls[${index}].hosts[${i}]`, host)),
      ...(secretName && !lenient.secretNames ? subdomain(`spec.tls[${index}].secretName`, secretName) : []),
    ]),
    ...(ingressClassName === undefined ? [] : subdomain('spec.ingressClassName', ingressClassName)),
  ]
}

type Rule = NonNullable<Spec['rules']>[number]

function ruleCauses(path: string, { host = '', http }: Rule, lenient: Leniency): StatusCause[] {
  const causes: StatusCause[] = []
  if (host !== '' && tryIp(host) !== undefined)
    causes.push(fieldInvalid(`${path}.host`, host, 'must be a DNS name, not an IP address'))
  if (host !== '') causes.push(...hostCauses(`${path}.host`, host))
  if (lenient.wildcardRules && host.includes('*')) return causes
  return [...causes, ...httpCauses(`${path}.http`, http, lenient)]
}

function hostCauses(path: string, host: string): StatusCause[] {
  if (!host.includes('*')) return subdomain(path, host)
  const good = host.startsWith('*.') && dns1123SubdomainErrors(host.slice(2)).length === 0
  return [
    ...(Buffer.byteLength(host) > 253 ? [fieldInvalid(path, host, maxLengthText(253))] : []),
    ...(good ? [] : [fieldInvalid(path, host, wildcardText)]),
  ]
}

function httpCauses(path: string, http: Rule['http'], lenient: Leniency): StatusCause[] {
  if (http === undefined) return []
  const paths = http.paths as typeof http.paths | null
  if (!paths?.length) return [fieldRequired(`${path}.paths`)]
  return paths.flatMap((item, index) => pathCauses(`${path}.paths[${index}]`, item, lenient))
}

type IngressPath = NonNullable<Rule['http']>['paths'][number]

function pathCauses(at: string, { path = '', pathType, backend }: IngressPath, lenient: Leniency): StatusCause[] {
  const type = pathType as string | null
  if (type === null || type === '') return [fieldRequired(`${at}.pathType`, 'pathType must be specified')]
  const complain = (text: string): StatusCause => fieldInvalid(`${at}.path`, path, text)
  const causes: StatusCause[] = []
  if (!pathTypes.includes(type)) causes.push(fieldNotSupported(`${at}.pathType`, type, pathTypes))
  else {
    const exact = type !== 'ImplementationSpecific'
    if (!path.startsWith('/') && (exact || path !== '')) causes.push(complain('must be an absolute path'))
    if (exact)
      for (const bad of ['//', '/./', '/../', '%2f', '%2F'])
        if (path.includes(bad)) causes.push(complain(`must not contain '${bad}'`))
    if (exact)
      for (const bad of ['/..', '/.']) if (path.endsWith(bad)) causes.push(complain(`cannot end with '${bad}'`))
  }
  return [...causes, ...backendCauses(`${at}.backend`, backend, lenient)]
}

function backendCauses(path: string, backend: Data<V1IngressBackend>, lenient: Leniency): StatusCause[] {
  const { service, resource } = backend
  if (service !== undefined && resource !== undefined)
    return [fieldInvalid(path, '', 'cannot set both resource and service backends')]
  if (resource !== undefined) return referenceCauses(`${path}.resource`, resource)
  if (service === undefined) return [fieldInvalid(path, '', 'resource or service backend is required')]
  const nameErrors = lenient.serviceNames ? dns1123LabelErrors : dns1035LabelErrors
  const at = `${path}.service.name`
  const causes =
    service.name === ''
      ? [fieldRequired(at)]
      : nameErrors(service.name).map((text) => fieldInvalid(at, service.name, text))
  const { name, number } = service.port ?? {}
  if (name && number) return [...causes, fieldInvalid(path, '', 'cannot set both port name & port number')]
  if (name) return [...causes, ...portOrName(`${path}.service.port.name`, name)]
  if (number) return [...causes, ...portNumber(`${path}.service.port.number`, number)]
  return [...causes, fieldRequired(path, 'port name or number is required')]
}

/** Validates a reference to an object of any kind: kind and name must be valid path segments. */
export function referenceCauses(
  path: string,
  { apiGroup, kind, name }: Omit<Data<V1TypedLocalObjectReference>, 'apiGroup'> & { apiGroup?: string | null },
): StatusCause[] {
  const segment = (member: string, text: string): StatusCause[] => [
    ...required(`${path}.${member}`, text),
    ...pathSegmentName(text, { prefix: false }).map((detail) => fieldInvalid(`${path}.${member}`, text, detail)),
  ]
  return [
    ...(typeof apiGroup === 'string' ? subdomain(`${path}.apiGroup`, apiGroup) : []),
    ...segment('kind', kind),
    ...segment('name', name),
  ]
}
