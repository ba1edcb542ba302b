// CertificateSigningRequests: the server sets the requesting user; `approval` and `status` write conditions; only
// `status` writes the certificate, and only once.
import { isDeepStrictEqual } from 'node:util'
import type { V1CertificateSigningRequestSpec } from '@kubernetes/client-node'
import { dns1123LabelErrors, dns1123SubdomainErrors } from '#apimachinery/field/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { goQuote } from '#apimachinery/text/index.ts'
import { certificateChainError, parseSigningRequest } from '#virtualapi/kinds/certificates/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import {
  all,
  causesOf,
  each,
  fields,
  maxBytes,
  must,
  nonEmpty,
  oneOf,
  required,
  unique,
  validating,
  when,
  type Report,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import {
  conditionChange,
  conditionsOf,
  requestConditions,
  restoreApprovalConditions,
  stampConditions,
  type RequestStatus,
} from './certificate-conditions.ts'
import type { KindRules } from './kind-rules.ts'

type Spec = Data<V1CertificateSigningRequestSpec>
type Old = Spec | undefined

const legacySigner = 'kubernetes.io/legacy-unknown'
const usages = (
  'any,cert sign,client auth,code signing,content commitment,crl sign,data encipherment,decipher only,' +
  'digital signature,email protection,encipher only,ipsec end system,ipsec tunnel,ipsec user,key agreement,' +
  'key encipherment,microsoft sgc,netscape sgc,ocsp signing,s/mime,server auth,signing,timestamping'
).split(',')

function requestError(request: string | null): string | undefined {
  try {
    return parseSigningRequest(Buffer.from(request ?? '', 'base64').toString('latin1')).signatureError
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

const longestDomain = 253
const shortDomain = maxBytes(longestDomain)
const shortName = maxBytes(longestDomain + 1 + longestDomain + 63 + 1)

/** The name of a signer: `domain/path`. */
const signerName = required((name: string, report: Report) => {
  const [domain = '', rest, ...more] = name.split('/')
  if (rest === undefined || more.length > 0) {
    report.invalid('', name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")
    return
  }
  report.check(shortDomain, domain)
  checkLabels(domain, dns1123LabelErrors, report)
  if (!domain.includes('.'))
    report.invalid('', domain, 'should be a domain with at least two segments separated by dots')
  checkLabels(rest, dns1123SubdomainErrors, report)
  report.check(shortName, name)
})

/** Reports the errors of the first invalid label only. */
function checkLabels(segment: string, errorsOf: (label: string) => string[], report: Report): void {
  for (const label of segment.split('.')) {
    const errors = errorsOf(label)
    for (const text of errors) report.invalid('', segment, `validating label ${goQuote(label)}: ${text}`)
    if (errors.length > 0) return
  }
}

const specRule = fields<Spec, Old>({
  request: (request, report) => {
    const wrong = requestError(request)
    if (wrong !== undefined) report.invalid('', request, wrong)
  },
  usages: all<string[] | undefined, Old>(
    nonEmpty(),
    // Usages stored before these rules existed may stay.
    when<string[] | undefined, Old>(
      (list, old) => !isDeepStrictEqual(list ?? [], old?.usages),
      all<string[] | undefined>(each(oneOf(usages)), each(unique<string>())),
    ),
  ),
  signerName: (name, report, old) => {
    if (name === legacySigner && old?.signerName !== legacySigner)
      report.invalid('', name, 'the legacy signerName is not allowed via this API version')
    else report.check(signerName, name)
  },
  expirationSeconds: must(
    (seconds: number) => seconds >= 600,
    'may not specify a duration less than 600 seconds (10 minutes)',
  ),
})

const certificateRule: Rule<KubeObject, KubeObject> = (object, report, old) => {
  const { certificate = '' } = statusOf(object)
  const { certificate: before = '' } = statusOf(old)
  if (certificate === before) return
  const wrong = certificate === '' ? undefined : certificateChainError(Buffer.from(certificate, 'base64').toString())
  if (wrong !== undefined) report.invalid('status.certificate', '<certificate data>', wrong)
  if (before !== '') report.forbidden('status.certificate', 'updates may not modify existing certificate content')
}

const specAndConditions: Rule<KubeObject, KubeObject | undefined> = (object, report, old) => {
  report.at('spec', specRule, object['spec'] as Spec, old?.['spec'] as Old)
  requestConditions(object, report, old)
}
const change = conditionChange('')
const approvalRule = all<KubeObject, KubeObject>(specAndConditions, certificateRule, conditionChange('approval'))
const statusRule = all<KubeObject, KubeObject>(specAndConditions, certificateRule, change)

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
  prepareForUpdate(object, old, { now }, subresource) {
    object['spec'] = structuredClone(old['spec'])
    if (subresource === 'status') restoreApprovalConditions(object, old)
    if (subresource === 'status' || subresource === 'approval') stampConditions(object, old, now)
    if (subresource !== 'approval') return
    const conditions = conditionsOf(object)
    const { conditions: _, ...status } = structuredClone(statusOf(old))
    object['status'] = conditions.length > 0 ? { conditions: [...conditions], ...status } : status
  },
  validate: validating<KubeObject>((object, report, old) => {
    specAndConditions(object, report, old)
    if (old !== undefined) change(object, report, old)
  }),
  validateSubresource: (object, old, subresource) =>
    causesOf(subresource === 'approval' ? approvalRule : statusRule, '', object, old),
}

function statusOf({ status }: KubeObject): RequestStatus {
  return status ?? {}
}
