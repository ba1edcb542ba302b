// CertificateSigningRequests: the server sets the requesting user; `approval` and `status` write conditions; only
// `status` writes the certificate, and only once.
import { isDeepStrictEqual } from 'node:util'
import type { V1CertificateSigningRequestSpec } from '@kubernetes/client-node'
import {
  fieldDuplicate,
  fieldForbidden,
  fieldInvalid,
  fieldNotSupported,
  fieldRequired,
} from '#apimachinery/field/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { certificateChainError, parseSigningRequest } from '#virtualapi/kinds/certificates/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import {
  conditionCauses,
  conditionChangeCauses,
  conditionsOf,
  restoreApprovalConditions,
  stampConditions,
  type RequestStatus,
} from './certificate-conditions.ts'
import { signerNameCauses } from './signer-name.ts'

type Spec = Data<V1CertificateSigningRequestSpec>

const legacySigner = 'kubernetes.io/legacy-unknown'
const usages = (
  'any,cert sign,client auth,code signing,content commitment,crl sign,data encipherment,decipher only,' +
  'digital signature,email protection,encipher only,ipsec end system,ipsec tunnel,ipsec user,key agreement,' +
  'key encipherment,microsoft sgc,netscape sgc,ocsp signing,s/mime,server auth,signing,timestamping'
).split(',')

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
  validate: (object, old) => [
    ...specCauses('spec', object['spec'] as Spec, old?.['spec'] as Spec | undefined),
    ...conditionCauses('status.conditions', object, old),
    ...(old === undefined ? [] : conditionChangeCauses('status.conditions', object, old, '')),
  ],
  validateSubresource: (object, old, subresource) => [
    ...specCauses('spec', object['spec'] as Spec, old['spec'] as Spec),
    ...conditionCauses('status.conditions', object, old),
    ...certificateCauses('status.certificate', object, old),
    ...conditionChangeCauses('status.conditions', object, old, subresource),
  ],
}

function statusOf({ status }: KubeObject): RequestStatus {
  return status ?? {}
}

function specCauses(path: string, spec: Spec, old: Spec | undefined): StatusCause[] {
  const { request, signerName, expirationSeconds = 600 } = spec
  const wanted = (spec.usages as string[] | undefined) ?? []
  // Usages stored before these rules existed may stay.
  const kept = isDeepStrictEqual(wanted, old?.usages)
  const wrong = requestError(request)
  return [
    ...(wrong === undefined ? [] : [fieldInvalid(`${path}.request`, request, wrong)]),
    ...(wanted.length === 0 ? [fieldRequired(`${path}.usages`)] : []),
    ...(kept ? [] : usageCauses(`${path}.usages`, wanted)),
    ...(signerName === legacySigner && old?.signerName !== legacySigner
      ? [fieldInvalid(`${path}.signerName`, signerName, 'the legacy signerName is not allowed via this API version')]
      : signerNameCauses(`${path}.signerName`, signerName)),
    ...(expirationSeconds < 600
      ? [
          fieldInvalid(
            `${path}.expirationSeconds`,
            expirationSeconds,
            'may not specify a duration less than 600 seconds (10 minutes)',
          ),
        ]
      : []),
  ]
}

function requestError(request: string | null): string | undefined {
  try {
    return parseSigningRequest(Buffer.from(request ?? '', 'base64').toString('latin1')).signatureError
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

function usageCauses(path: string, list: readonly string[]): StatusCause[] {
  const seen = new Set<string>()
  const unknown = list.flatMap((usage, index) =>
    usages.includes(usage) ? [] : [fieldNotSupported(`${path}[${index}]`, usage, usages)],
  )
  const repeated = list.flatMap((usage, index) => {
    if (seen.has(usage)) return [fieldDuplicate(`${path}[${index}]`, usage)]
    seen.add(usage)
    return []
  })
  return [...unknown, ...repeated]
}

function certificateCauses(path: string, object: KubeObject, old: KubeObject): StatusCause[] {
  const { certificate = '' } = statusOf(object)
  const { certificate: before = '' } = statusOf(old)
  if (certificate === before) return []
  const wrong = certificate === '' ? undefined : certificateChainError(Buffer.from(certificate, 'base64').toString())
  return [
    ...(wrong === undefined ? [] : [fieldInvalid(path, '<certificate data>', wrong)]),
    ...(before === '' ? [] : [fieldForbidden(path, 'updates may not modify existing certificate content')]),
  ]
}
