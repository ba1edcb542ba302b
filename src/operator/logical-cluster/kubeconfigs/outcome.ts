// The state of the Secrets of one LogicalCluster, as a condition. Pure.
import type { ConditionUpdate } from '#crds/index.ts'
import type { SecretRef } from './plan-secret.ts'

export type ProblemReason =
  | 'SubjectInvalid'
  | 'DuplicateSecret'
  | 'SecretNotOurs'
  | 'NamespaceMissing'
  | 'Forbidden'
  | 'ServiceAccountMissing'
  | 'Refused'

/** Why a Secret could not be written or deleted, and what to do. */
export interface Problem {
  readonly reason: ProblemReason
  readonly message: string
}

export interface KubeconfigsOutcome {
  /** For status.kubeconfigs: the Secrets of all entries, and those that could not be deleted. */
  readonly secrets: readonly SecretRef[]
  readonly written: number
  readonly problems: readonly Problem[]
  /** Seconds until the Secrets are checked again. */
  readonly requeueAfterSeconds: number
}

/** Condition KubeconfigsWritten; undefined if the LogicalCluster has no such Secrets. */
export function kubeconfigsCondition({ secrets, written, problems }: KubeconfigsOutcome): ConditionUpdate | undefined {
  const type = 'KubeconfigsWritten'
  const [first] = problems
  if (first !== undefined) {
    const message = problems.map((problem) => problem.message).join('; ')
    return { type, status: 'False', reason: first.reason, message: message.slice(0, 4096) }
  }
  if (secrets.length === 0) return undefined
  return { type, status: 'True', reason: 'Written', message: `${written} Secrets with kubeconfigs are up to date` }
}
