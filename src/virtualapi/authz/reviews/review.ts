// The review APIs: questions in the form of objects that are created and never kept. One pure function each, from the
// object that came and who sent it to the object with its answer.
import { isJsonObject, type KubeObject } from '../../../apimachinery/meta/index.ts'
import type { TokenReviewer } from '../../authn/token-reviewer.ts'
import type { UserInfo } from '../../authn/user-info.ts'
import type { RbacAuthorizer } from '../index.ts'
import type { LogicalCluster } from '../../clusters/directory.ts'

/** What a review may look at. */
export interface ReviewContext {
  /** Who asks. */
  readonly user: UserInfo
  readonly cluster: LogicalCluster
  /** Of the URL; empty for cluster-scoped reviews. */
  readonly namespace: string
  readonly authorizer: Pick<RbacAuthorizer, 'authorize' | 'rulesFor'>
  readonly tokenReviewer: TokenReviewer | undefined
  readonly signal: AbortSignal
  /** Wall clock, milliseconds. */
  readonly now: number
}

/** Answers a review. Does not change `object`. Rejects 400 and 422 for a question that can't be understood. */
export type Review = (object: KubeObject, context: ReviewContext) => Promise<KubeObject>

/** The object with an answer in it. */
export function answered({ kind, apiVersion, metadata, spec }: KubeObject, status: object): KubeObject {
  return { kind, apiVersion, metadata, ...(spec === undefined ? {} : { spec: withoutEmptyGroups(spec) }), status }
}

/** As Go writes it. */
function withoutEmptyGroups(spec: unknown): unknown {
  if (!isJsonObject(spec) || !Array.isArray(spec['groups']) || spec['groups'].length > 0) return spec
  const { groups: _, ...rest } = spec
  return rest
}

/** spec of a review; an empty object where there is none. */
export function specOf(object: KubeObject): Readonly<Record<string, unknown>> {
  return isJsonObject(object['spec']) ? object['spec'] : {}
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

export function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []
}

/** authentication.k8s.io UserInfo. */
export function userInfoOf({ name, uid, groups, extra }: UserInfo): object {
  return {
    username: name,
    ...(uid === undefined ? {} : { uid }),
    groups,
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  }
}
