// SelfSubjectAccessReview, SubjectAccessReview and LocalSubjectAccessReview: decide whether a user may do something.
import { fieldInvalid, fieldTooMany } from '#apimachinery/field/index.ts'
import { isJsonObject, type JsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import { badRequest, invalid, type StatusCause } from '#apimachinery/status/index.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import type { Attributes } from '#virtualapi/request/authorizer.ts'
import { selectorCauses, selectorProblems } from './selector-attributes.ts'
import { answered, specOf, textOf, textsOf, type Review, type ReviewContext } from './review.ts'

/** Maximum of groups of one user in a review. kube-apiserver has no maximum. */
const maxGroups = 10_000

/** Reviews the access of the requesting user. */
export const selfSubjectAccessReview: Review = async (object, context) => {
  const { resourceAttributes } = specOf(object)
  throwIfInvalid([...attributesCauses(object), ...selectorCauses(resourceAttributes), ...metadataCauses(object)])
  return decide(object, context.user, context)
}

/** Reviews the access of any user. */
export const subjectAccessReview: Review = async (object, context) => {
  const { resourceAttributes } = specOf(object)
  const causes = [...attributesCauses(object), ...subjectCauses(object), ...selectorCauses(resourceAttributes)]
  throwIfInvalid([...causes, ...metadataCauses(object)])
  return decide(object, subjectOf(object, context), context)
}

/** Reviews the access of any user in one namespace. For callers with rights in that namespace only. */
export const localSubjectAccessReview: Review = async (object, context) => {
  const { resourceAttributes, nonResourceAttributes } = specOf(object)
  const causes = [...attributesCauses(object), ...subjectCauses(object), ...selectorCauses(resourceAttributes)]
  causes.push(...metadataCauses(object, 'must be empty except for namespace'))
  const asked = isJsonObject(resourceAttributes) ? textOf(resourceAttributes['namespace']) : ''
  if (isJsonObject(resourceAttributes) && asked !== context.namespace)
    causes.push(fieldInvalid('spec.resourceAttributes.namespace', asked, 'must match metadata.namespace'))
  if (nonResourceAttributes !== undefined)
    causes.push(invalidPath(nonResourceAttributes, 'disallowed on this kind of request'))
  throwIfInvalid(causes)
  const { namespace = context.namespace } = object.metadata
  if (namespace !== context.namespace)
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
  const inNamespace = { ...object, metadata: { ...object.metadata, namespace } }
  return decide(inNamespace, subjectOf(object, context), context)
}

async function decide(
  object: KubeObject,
  user: UserInfo,
  { authorizer, cluster, work, signal }: ReviewContext,
): Promise<KubeObject> {
  const { allowed, reason } = await authorizer.authorize(user, attributesOf(object), { cluster, work, signal })
  const evaluationError = selectorProblems(specOf(object)['resourceAttributes'])
  return answered(object, {
    allowed,
    ...(reason === '' ? {} : { reason }),
    ...(evaluationError === '' ? {} : { evaluationError }),
  })
}

function attributesOf(object: KubeObject): Attributes {
  const { resourceAttributes, nonResourceAttributes } = specOf(object)
  if (isJsonObject(resourceAttributes)) {
    const field = (name: string): string => textOf(resourceAttributes[name])
    const resource = {
      group: field('group'),
      version: field('version'),
      resource: field('resource'),
      subresource: field('subresource'),
      namespace: field('namespace'),
      name: field('name'),
    }
    return { verb: field('verb'), resource }
  }
  const path = isJsonObject(nonResourceAttributes) ? nonResourceAttributes : {}
  return { verb: textOf(path['verb']), path: textOf(path['path']) }
}

/**
 * The user in question, always as an identity of this logical cluster or of an ancestor: a tenant must not ask about
 * identities of the host.
 */
function subjectOf(object: KubeObject, { cluster, authorizer }: ReviewContext): UserInfo {
  const { user, uid, groups, extra } = specOf(object)
  const extras = isJsonObject(extra)
    ? Object.entries(extra).map(([key, values]) => [key, textsOf(values)] as const)
    : []
  const asked: UserInfo = {
    name: textOf(user),
    ...(typeof uid === 'string' && uid !== '' ? { uid } : {}),
    groups: textsOf(groups),
    extra: Object.fromEntries(extras),
    realm: { kind: 'cluster', id: cluster.id },
  }
  return authorizer.reviewed(asked, cluster)
}

function attributesCauses(object: KubeObject): StatusCause[] {
  const { resourceAttributes, nonResourceAttributes } = specOf(object)
  const [resource, path] = [isJsonObject(resourceAttributes), isJsonObject(nonResourceAttributes)]
  if (resource && path) {
    return [invalidPath(nonResourceAttributes, 'cannot be specified in combination with resourceAttributes')]
  }
  if (resource || path) return []
  return [
    invalidField(
      'spec.resourceAttributes',
      'exactly one of nonResourceAttributes or resourceAttributes must be specified',
    ),
  ]
}

function subjectCauses(object: KubeObject): StatusCause[] {
  const { user, groups } = specOf(object)
  const { length } = textsOf(groups)
  if (length > maxGroups) return [fieldTooMany('spec.groups', length, maxGroups)]
  if (textOf(user) !== '' || textsOf(groups).length > 0) return []
  return [
    {
      reason: 'FieldValueInvalid',
      field: 'spec.user',
      message: 'Invalid value: "": at least one of user or group must be specified',
    },
  ]
}

function invalidField(field: string, message: string): StatusCause {
  return { reason: 'FieldValueInvalid', field, message: `Invalid value: null: ${message}` }
}

/** Prints the value as Go prints its internal struct. */
function invalidPath(given: unknown, detail: string): StatusCause {
  const { path, verb } = isJsonObject(given) ? given : {}
  const shown = JSON.stringify({ Path: textOf(path), Verb: textOf(verb) })
  return {
    reason: 'FieldValueInvalid',
    field: 'spec.nonResourceAttributes',
    message: `Invalid value: ${shown}: ${detail}`,
  }
}

/** Metadata of a review must be empty: a review is never stored. */
function metadataCauses({ metadata }: KubeObject, detail = 'must be empty'): StatusCause[] {
  const { creationTimestamp: _, namespace: _namespace, ...given } = metadata
  return Object.keys(given).length === 0 ? [] : [fieldInvalid('metadata', { ...given } as JsonObject, detail)]
}

/** Throws Invalid if there are errors. As in kube-apiserver, the message names no kind. */
function throwIfInvalid(causes: StatusCause[]): void {
  if (causes.length > 0) throw invalid({ group: 'authorization.k8s.io', kind: '' }, '', causes)
}
