// POST serviceaccounts/NAME/token: issues a token of the ServiceAccount (TokenRequest).
import { decodeJwt } from 'jose'
import type { KubeObject, ObjectMeta } from '#apimachinery/meta/index.ts'
import { badRequest, conflict, invalid, methodNotServed, type StatusCause } from '#apimachinery/status/index.ts'
import { timestamp } from '#async/index.ts'
import { apiAudience, type NameAndUid } from '#virtualapi/auth/authn/index.ts'
import { jsonDocument } from '#virtualapi/codec/responses.ts'
import { decodeObjectBody, objectOf, withKind } from '#virtualapi/codec/read-object.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { ApiResponse } from '#virtualapi/request/exchange.ts'
import type { EndpointCall } from '#virtualapi/endpoints/call/endpoint-call.ts'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'
import { recordGiven } from '#virtualapi/endpoints/call/record-request.ts'
import { requireContentType } from '#virtualapi/endpoints/verbs/create.ts'

const kind = { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' }
const minSeconds = 600
const maxSeconds = 2 ** 32

interface ObjectReference {
  readonly kind?: string
  readonly apiVersion?: string
  readonly name?: string
  readonly uid?: string
}
interface TokenRequestSpec {
  readonly audiences?: readonly string[] | null
  readonly expirationSeconds?: number | null
  readonly boundObjectRef?: ObjectReference | null
}
type Bound = Partial<Record<'pod' | 'secret' | 'node', NameAndUid>>

/**
 * Issues a token. Rejects with 404 if the ServiceAccount or the bound object does not exist, with 409 for another uid,
 * and with 422 for an invalid request.
 */
export async function requestToken(call: EndpointCall<EndpointDependencies>): Promise<ApiResponse> {
  const { exchange, dependencies, cluster, request, target } = call
  if (exchange.info.verb !== 'create') throw methodNotServed()
  const { namespace, name } = request
  const asked = await readRequest(call)
  const { metadata } = asked
  requireSameAccount(metadata, { namespace, name })
  const account = decodeObject(dependencies.registry.get(target, name).bytes).metadata
  const uid = account.uid ?? ''
  if (metadata.uid !== undefined && metadata.uid !== '' && metadata.uid !== uid)
    throw conflict(
      { group: kind.group, resource: kind.kind },
      name,
      `the UID in the token request (${metadata.uid}) does not match the UID of the service account (${uid})`,
    )
  const spec = specOf(await admitted(call, asked, uid))
  const causes = durationCauses(spec.expirationSeconds)
  if (causes.length > 0) throw invalid(kind, '', causes)
  const bound = spec.boundObjectRef === null ? {} : boundObject(call, spec.boundObjectRef)
  const token = await dependencies.accountTokens.issue({
    cluster: cluster.id,
    namespace,
    serviceAccount: { name, uid },
    audiences: spec.audiences,
    expirationSeconds: spec.expirationSeconds,
    ...bound,
  })
  const { jti } = decodeJwt(token)
  if (jti !== undefined) exchange.annotate('authentication.kubernetes.io/issued-credential-id', `JTI=${jti}`)
  const { now } = target.context
  const body = {
    kind: kind.kind,
    apiVersion: `${kind.group}/${kind.version}`,
    metadata: { ...metadata, name, namespace, uid, creationTimestamp: timestamp(now) },
    spec,
    status: { token, expirationTimestamp: timestamp(now + spec.expirationSeconds * 1000) },
  }
  return jsonDocument(body, { status: 201 })
}

/** The spec with its defaults. */
function specOf({
  spec,
}: KubeObject): Required<TokenRequestSpec> & { audiences: readonly string[]; expirationSeconds: number } {
  const { audiences, expirationSeconds, boundObjectRef } = (spec ?? {}) as TokenRequestSpec
  return {
    audiences: audiences == null || audiences.length === 0 ? [apiAudience] : audiences,
    expirationSeconds: expirationSeconds ?? 3600,
    boundObjectRef: boundObjectRef ?? null,
  }
}

/** The request as the webhooks leave it. They see the complete request, with the identity of the ServiceAccount. */
async function admitted(
  { dependencies, target, request }: EndpointCall,
  asked: KubeObject,
  uid: string,
): Promise<KubeObject> {
  const { name, namespace } = request
  const metadata = { ...asked.metadata, name, namespace, uid, creationTimestamp: timestamp(target.context.now) }
  const status = { token: '', expirationTimestamp: null }
  const shown = { ...asked, metadata, spec: specOf(asked), status }
  await dependencies.registry.admitPart(target, { operation: 'CREATE', subresource: 'token', name, kind }, shown)
  return shown
}

async function readRequest(call: EndpointCall): Promise<KubeObject> {
  const { exchange, definition, fieldValidation } = call
  const contentType = requireContentType(exchange.header('content-type'))
  const decoded = decodeObjectBody(await exchange.request.body(), contentType, kind.kind)
  const expected = withKind(definition, kind)
  const { warnings } = exchange
  const asked = objectOf(decoded, { definition: expected, fieldValidation, warnings })
  recordGiven(
    call,
    exchange.recordsRequest
      ? { ...asked, spec: specOf(asked), status: { token: '', expirationTimestamp: null } }
      : asked,
  )
  return asked
}

function requireSameAccount({ name = '', namespace = '' }: ObjectMeta, url: { name: string; namespace: string }): void {
  const wrong = (field: string, value: string, what: string): StatusCause => ({
    reason: 'FieldValueInvalid',
    message: `Invalid value: ${JSON.stringify(value)}: must match the service account ${what} if specified`,
    field: `metadata.${field}`,
  })
  if (name !== '' && name !== url.name) throw invalid(kind, url.name, [wrong('name', name, 'name')])
  if (namespace !== '' && namespace !== url.namespace)
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
}

function durationCauses(seconds: number): StatusCause[] {
  const wrong = (text: string): StatusCause[] => [
    {
      reason: 'FieldValueInvalid',
      message: `Invalid value: ${seconds}: may not specify a duration ${text}`,
      field: 'spec.expirationSeconds',
    },
  ]
  if (seconds < minSeconds) return wrong('less than 10 minutes')
  return seconds > maxSeconds ? wrong('larger than 2^32 seconds') : []
}

/** The object whose deletion invalidates the token. */
function boundObject(call: EndpointCall, reference: ObjectReference): Bound {
  const { apiVersion = '', name = '' } = reference
  const [group = '', version = ''] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion]
  // As in kube-apiserver, any version is accepted.
  if (group === '' && reference.kind === 'Pod') {
    const pod = readNamed(call, 'pods', reference)
    const { serviceAccountName, nodeName = '' } = (pod['spec'] ?? {}) as {
      serviceAccountName?: string
      nodeName?: string
    }
    if (serviceAccountName !== call.request.name)
      throw badRequest(
        `cannot bind token for serviceaccount ${JSON.stringify(call.request.name)} to pod running with different serviceaccount name.`,
      )
    const node = nodeName === '' ? undefined : call.objects.get('nodes', '', nodeName)
    return {
      pod: { name, uid: pod.metadata.uid ?? '' },
      ...(nodeName === '' ? {} : { node: { name: nodeName, uid: node?.facts.uid ?? '' } }),
    }
  }
  if (group === '' && reference.kind === 'Secret')
    return { secret: { name, uid: readNamed(call, 'secrets', reference).metadata.uid ?? '' } }
  if (group === '' && reference.kind === 'Node')
    return { node: { name, uid: readNamed(call, 'nodes', reference).metadata.uid ?? '' } }
  throw badRequest(`cannot bind token to object of type ${group}/${version}, Kind=${reference.kind ?? ''}`)
}

function readNamed(
  { dependencies, target, request }: EndpointCall,
  resource: string,
  reference: ObjectReference,
): KubeObject {
  const { name = '', uid = '' } = reference
  if (name === '') throw badRequest('Name parameter required.')
  const definition = dependencies.catalog.findBuiltIn({ group: '', version: 'v1', resource })
  if (definition === undefined) throw badRequest(`cannot bind token to object of type /v1, Kind=${resource}`)
  const namespace = definition.info.namespaced ? request.namespace : ''
  const object = decodeObject(dependencies.registry.get({ ...target, definition, namespace }, name).bytes)
  if (uid !== '' && uid !== object.metadata.uid)
    throw conflict(
      { group: '', resource: reference.kind ?? '' },
      name,
      `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`,
    )
  return object
}
