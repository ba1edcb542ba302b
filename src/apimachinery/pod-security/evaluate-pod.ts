// Evaluates a pod against a level and version of the Pod Security Standards, with the words of kube-apiserver.
import { baselineChecks } from './baseline-checks.ts'
import type { PodSecurityPolicy } from './level.ts'
import type { CheckPod, PodCheck, PodSecurityViolation } from './pod-check.ts'
import type { PodToCheck } from './pod-to-check.ts'
import { restrictedChecks } from './restricted-checks.ts'

export type { PodSecurityViolation } from './pod-check.ts'

/**
 * All violations of the level by the pod; empty if the pod is allowed. Order and texts are those of kube-apiserver
 * 1.34.
 */
export function evaluatePod(
  { level, version = 'latest' }: PodSecurityPolicy,
  pod: PodToCheck,
): readonly PodSecurityViolation[] {
  if (level === 'privileged') return []
  const minor = version === 'latest' ? Infinity : version
  return checksOf(level, minor)
    .map((check) => check(pod))
    .filter((violation) => violation !== undefined)
}

/**
 * `host namespaces (hostNetwork=true), privileged (container "a" must not ...)`: the text that follows the name of the
 * policy.
 */
export function podSecurityViolationsText(violations: readonly PodSecurityViolation[]): string {
  return violations.map(({ reason, detail }) => (detail === '' ? reason : `${reason} (${detail})`)).join(', ')
}

function checksOf(level: 'baseline' | 'restricted', minor: number): CheckPod[] {
  if (level === 'baseline') return inVersion(baselineChecks, minor)
  const restricted = restrictedChecks.filter((check) => versionOf(check, minor) !== undefined)
  const overridden = new Set(restricted.map(({ overrides }) => overrides))
  return inVersion([...baselineChecks.filter(({ id }) => !overridden.has(id)), ...restricted], minor)
}

function inVersion(checks: readonly PodCheck[], minor: number): CheckPod[] {
  return checks.map((check) => versionOf(check, minor)).filter((check) => check !== undefined)
}

function versionOf({ versions }: PodCheck, minor: number): CheckPod | undefined {
  return versions.findLast(([since]) => since <= minor)?.[1]
}
