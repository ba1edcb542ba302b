// Ingresses: hosts, paths and backends.
import type {
  V1HTTPIngressPath,
  V1HTTPIngressRuleValue,
  V1IngressBackend,
  V1IngressRule,
  V1IngressSpec,
  V1IngressTLS,
  V1TypedLocalObjectReference,
} from '@kubernetes/client-node'
import {
  byteLength,
  dns1035LabelErrors,
  dns1123LabelErrors,
  dns1123SubdomainErrors,
  maxLengthText,
  regexText,
} from '#apimachinery/field/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { label, pathSegment, portName, portNumber, subdomain } from '#virtualapi/kinds/validation/basic-rules.ts'
import { tryIp } from '#virtualapi/kinds/validation/ip-values.ts'
import {
  all,
  causesOf,
  each,
  fields,
  given,
  nonEmpty,
  oneOf,
  optional,
  required,
  text,
  validating,
  when,
  type ObjectOf,
  type Report,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import type { KindRules } from './kind-rules.ts'
import { loadBalancerWarnings } from './service-warnings.ts'

type Spec = Data<V1IngressSpec>

const wildcardText = regexText(
  "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
  '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*',
  '*.example.com',
)
const classAnnotation = 'kubernetes.io/ingress.class'

/** Mistakes that an update may keep because the stored object already has them. */
interface Leniency {
  readonly secretNames: boolean
  readonly wildcardRules: boolean
  readonly serviceNames: boolean
}

const strict: Leniency = { secretNames: false, wildcardRules: false, serviceNames: false }

/** A reference to an object of any kind: kind and name must be valid path segments. */
export const typedReference = fields<
  Omit<Data<V1TypedLocalObjectReference>, 'apiGroup'> & { apiGroup?: string | null }
>({
  apiGroup: optional(subdomain),
  kind: all<string>(nonEmpty(), pathSegment),
  name: all<string>(nonEmpty(), pathSegment),
})

const host = given<string>((name, report) => {
  if (!name.includes('*')) {
    report.check(subdomain, name)
    return
  }
  if (byteLength(name) > 253) report.invalid('', name, maxLengthText(253))
  if (!name.startsWith('*.') || dns1123SubdomainErrors(name.slice(2)).length > 0) report.invalid('', name, wildcardText)
})

const serviceName = required(text(dns1035LabelErrors))
const lenientServiceName = required(label)

const backend: Rule<Data<V1IngressBackend>, Leniency> = ({ service, resource }, report, lenient) => {
  if (service !== undefined && resource !== undefined) {
    report.invalid('', '', 'cannot set both resource and service backends')
    return
  }
  if (resource !== undefined) {
    report.at('resource', typedReference, resource)
    return
  }
  if (service === undefined) {
    report.invalid('', '', 'resource or service backend is required')
    return
  }
  report.at('service.name', lenient.serviceNames ? lenientServiceName : serviceName, service.name)
  const { name, number } = service.port ?? {}
  if (name && number) report.invalid('', '', 'cannot set both port name & port number')
  else if (name) report.at('service.port.name', portName, name)
  else if (number) report.at('service.port.number', portNumber, number)
  else report.required('', 'port name or number is required')
}

const pathType = oneOf(['Exact', 'ImplementationSpecific', 'Prefix'])

const pathRule: Rule<Data<V1HTTPIngressPath>, Leniency> = (one, report, lenient) => {
  const { path = '', pathType: type } = one as Omit<typeof one, 'pathType'> & { pathType: string | null }
  if (type === null || type === '') {
    report.required('pathType', 'pathType must be specified')
    return
  }
  report.at('pathType', pathType, type)
  const exact = type === 'Exact' || type === 'Prefix'
  if (!path.startsWith('/') && (exact || (type === 'ImplementationSpecific' && path !== '')))
    report.invalid('path', path, 'must be an absolute path')
  if (exact) {
    for (const bad of ['//', '/./', '/../', '%2f', '%2F'])
      if (path.includes(bad)) report.invalid('path', path, `must not contain '${bad}'`)
    for (const bad of ['/..', '/.']) if (path.endsWith(bad)) report.invalid('path', path, `cannot end with '${bad}'`)
  }
  report.at('backend', backend, one.backend, lenient)
}

const httpRule = optional(fields<Data<V1HTTPIngressRuleValue>, Leniency>({ paths: required(each(pathRule)) }))

const rule: Rule<Data<V1IngressRule>, Leniency> = ({ host: name = '', http }, report, lenient) => {
  if (name !== '' && tryIp(name) !== undefined) report.invalid('host', name, 'must be a DNS name, not an IP address')
  report.at('host', host, name)
  if (!lenient.wildcardRules || !name.includes('*')) report.at('http', httpRule, http, lenient)
}

const tls = fields<Data<V1IngressTLS>, Leniency>({
  hosts: each((name, report) => (name === '' ? report.check(subdomain, name) : report.check(host, name))),
  secretName: when((_, { secretNames }) => !secretNames, given(subdomain)),
})

const specRule = all<Spec, Leniency>(
  ({ rules, defaultBackend }, report) => {
    if (!rules?.length && defaultBackend === undefined)
      report.invalid('', null, 'either `defaultBackend` or `rules` must be specified')
  },
  fields<Spec, Leniency>({
    defaultBackend: optional(backend),
    rules: each(rule),
    tls: each(tls),
    ingressClassName: optional(subdomain),
  }),
)

/** If class annotation and ingressClassName are both set, they must be equal. */
function checkClass({ metadata, spec }: ObjectOf<Spec>, report: Report): void {
  const annotation = metadata.annotations?.[classAnnotation]
  const name = spec.ingressClassName
  if (annotation !== undefined && name !== undefined && annotation !== name)
    report.invalid(
      `annotations.${classAnnotation}`,
      annotation,
      'must match `ingressClassName` when both are specified',
    )
}

export const ingressRules: KindRules = {
  statusWarningsOf: ({ status }) => loadBalancerWarnings(status),
  validate: validating<ObjectOf<Spec>>((ingress, report, old) => {
    report.at('spec', specRule, ingress.spec, old === undefined ? strict : leniencyFor(old.spec))
    if (old === undefined) checkClass(ingress, report)
  }),
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
    wildcardRules: rules.some(
      ({ host, http }) => host?.includes('*') && causesOf(httpRule, '', http, strict).length > 0,
    ),
    serviceNames: services.some((name) => dns1035LabelErrors(name).length > 0 && dns1123LabelErrors(name).length === 0),
  }
}
