// AdmissionReview: the request to an admission webhook and its response (admission.k8s.io/v1 and v1beta1).
import { randomUUID } from 'node:crypto'
import { goQuote } from '#apimachinery/text/index.ts'
import { parseJson } from '#apimachinery/json/index.ts'
import { encodeJson, isJsonObject, parseApiVersion, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import type { AdmissionRequest } from '#virtualapi/write/admission/admission.ts'
import type { Shown } from '#virtualapi/write/admission/shown.ts'
import type { WebhookType } from './webhook-configurations.ts'

export type ReviewVersion = 'v1' | 'v1beta1'

/** The first version that both sides know; undefined if there is none. */
export function reviewVersionOf(versions: readonly string[]): ReviewVersion | undefined {
  return versions.find((version): version is ReviewVersion => version === 'v1' || version === 'v1beta1')
}

/** The review of a request, with its uid. */
export function admissionReview(
  shown: Shown,
  version: ReviewVersion,
): { readonly uid: string; readonly body: Uint8Array } {
  const uid = randomUUID()
  const review = {
    kind: 'AdmissionReview',
    apiVersion: `admission.k8s.io/${version}`,
    request: admissionRequest(shown, uid),
  }
  return { uid, body: Buffer.from(`${encodeJson(review)}\n`) }
}

/** AdmissionRequest of admission.k8s.io/v1, which v1beta1 has as well. */
export function admissionRequest({ request, own, form, object, old }: Shown, uid: string): JsonObject {
  const { operation, subresource, name, context } = request
  const namespace = namespaceOf(request)
  const { group, version, resource } = form
  return {
    uid,
    kind: { ...form.kind },
    resource: { group, version, resource },
    ...(subresource === '' ? {} : { subResource: subresource }),
    requestKind: { ...own.kind },
    requestResource: { group: own.group, version: own.version, resource: own.resource },
    ...(subresource === '' ? {} : { requestSubResource: subresource }),
    ...(name === '' || request.ofCollection === true ? {} : { name }),
    ...(namespace === '' ? {} : { namespace }),
    operation,
    userInfo: userInfoOf(request),
    object: (object ?? null) as JsonObject | null,
    oldObject: (old ?? null) as JsonObject | null,
    dryRun: context.dryRun,
    options: operation === 'CONNECT' ? null : (context.options ?? null),
  }
}

/** The namespace of a request; for a Namespace object its own name. */
export function namespaceOf({ definition: { info }, namespace, name }: AdmissionRequest): string {
  return info.group === '' && info.resource === 'namespaces' ? name : namespace
}

function userInfoOf({ context: { user } }: AdmissionRequest): JsonObject {
  const { name, uid, groups, extra } = user
  return {
    ...(name === '' ? {} : { username: name }),
    ...(uid ? { uid } : {}),
    ...(groups.length === 0 ? {} : { groups: [...groups] }),
    ...(Object.keys(extra).length === 0
      ? {}
      : { extra: Object.fromEntries(Object.entries(extra).map(([key, values]) => [key, [...values]])) }),
  }
}

/** A webhook's verdict. */
export interface Verdict {
  readonly allowed: boolean
  /** JSON of a patch; undefined if there is none. */
  readonly patch: string | undefined
  readonly patchType: string
  /** metav1.Status of a refusal. */
  readonly result: JsonObject | undefined
  readonly warnings: readonly string[]
  readonly auditAnnotations: Readonly<Record<string, string>>
}

/** The response could not be decoded, which counts as a failed call. */
export class UndecodableReview extends Error {}
/** The response is a review that breaks the rules of its version. */
export class InvalidReview extends Error {}

const maxDepth = 1000
const maxReviewBytes = 8 * 1024 * 1024
/** Large responses have been reduced to the used fields already (outbound/calls/reduce-review.ts). */
const maxReviewValues = 50_000

/** Reads the response to a review. Throws UndecodableReview and InvalidReview. */
export function readVerdict(
  body: Uint8Array,
  { uid, version, type }: { uid: string; version: ReviewVersion; type: WebhookType },
): Verdict {
  const review = decode(body)
  requireType(review, version)
  const { response } = review
  if (response === undefined || response === null) throw new InvalidReview('webhook response was absent')
  if (!isJsonObject(response)) throw wrongType('response')
  if (version === 'v1' && response['uid'] !== uid)
    throw new InvalidReview(`expected response.uid=${goQuote(uid)}, got ${goQuote(textOf(response, 'uid') ?? '')}`)
  const result = response['status'] ?? undefined
  if (result !== undefined && !isJsonObject(result)) throw wrongType('response.status')
  return {
    allowed: isAllowed(response),
    ...responsePatch(response, version, type),
    result,
    warnings: textsOf(response, 'warnings'),
    auditAnnotations: textMapOf(response, 'auditAnnotations'),
  }
}

function decode(body: Uint8Array): JsonObject {
  let value: JsonValue
  try {
    value = parseJson(Buffer.from(body), { maxDepth, maxBytes: maxReviewBytes, maxValues: maxReviewValues }).value
  } catch (error) {
    throw new UndecodableReview(`couldn't get version/kind; json parse error: ${(error as Error).message}`)
  }
  if (!isJsonObject(value)) throw new UndecodableReview("couldn't get version/kind; json parse error")
  return value
}

function requireType(review: JsonObject, version: ReviewVersion): void {
  const kind = textOf(review, 'kind') ?? ''
  const { group, version: given } = parseApiVersion(textOf(review, 'apiVersion') ?? '')
  // As upstream, whose decoder needs a kind before it looks at the response.
  if (kind === '') throw new UndecodableReview("Object 'Kind' is missing in the answer")
  const isReview = kind === 'AdmissionReview' && group === 'admission.k8s.io'
  if (isReview && given !== version && reviewVersionOf([given]) !== undefined)
    throw new UndecodableReview(
      `converting (${given}.AdmissionReview) to (${version}.AdmissionReview): unknown conversion`,
    )
  if (version === 'v1beta1') return
  if (isReview && given === 'v1') return
  throw new InvalidReview(
    `expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got ${group}/${given}, Kind=${kind}`,
  )
}

function isAllowed(response: JsonObject): boolean {
  const { allowed = false } = response
  if (typeof allowed !== 'boolean') throw wrongType('response.allowed')
  return allowed
}

function responsePatch(
  response: JsonObject,
  version: ReviewVersion,
  type: WebhookType,
): Pick<Verdict, 'patch' | 'patchType'> {
  const encoded = textOf(response, 'patch') ?? ''
  const patchType = textOf(response, 'patchType')
  const patch = encoded === '' ? undefined : Buffer.from(encoded, 'base64').toString()
  if (version === 'v1beta1') return { patch: type === 'mutating' ? patch : undefined, patchType: 'JSONPatch' }
  if (type === 'validating') {
    if (patch !== undefined) throw new InvalidReview('validating webhook may not return response.patch')
    if (patchType !== undefined) throw new InvalidReview('validating webhook may not return response.patchType')
  }
  if (patch !== undefined && patchType === undefined)
    throw new InvalidReview('webhook returned response.patch but not response.patchType')
  if (patch === undefined && patchType !== undefined)
    throw new InvalidReview('webhook returned response.patchType but not response.patch')
  if (patchType === '') throw new InvalidReview('webhook returned invalid response.patchType of ""')
  return { patch, patchType: patchType ?? '' }
}

function wrongType(field: string): UndecodableReview {
  return new UndecodableReview(`json: cannot unmarshal ${field} of the answer: it has a wrong type`)
}

function textOf(object: JsonObject, field: string): string | undefined {
  const value = object[field] ?? undefined
  if (value !== undefined && typeof value !== 'string') throw wrongType(field)
  return value
}

function textsOf(object: JsonObject, field: string): string[] {
  const value = object[field] ?? []
  if (!Array.isArray(value)) throw wrongType(field)
  return value.map((text) => {
    if (typeof text !== 'string') throw wrongType(field)
    return text
  })
}

function textMapOf(object: JsonObject, field: string): Record<string, string> {
  const value = object[field] ?? {}
  if (!isJsonObject(value) || Object.values(value).some((text) => typeof text !== 'string')) throw wrongType(field)
  return value as Record<string, string>
}
