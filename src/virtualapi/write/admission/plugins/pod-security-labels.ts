// The labels pod-security.kubernetes.io/* of a namespace: the policies for its pods, and the effect of a violation.
import { fieldInvalid } from '#apimachinery/field/index.ts'
import {
  podSecurityLevels,
  tryPodSecurityLevel,
  tryPodSecurityVersion,
  type PodSecurityPolicy,
} from '#apimachinery/pod-security/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'

export type LabelPolicy = Required<PodSecurityPolicy>

/**
 * The policies of a namespace's labels. `enforce` is the restricted level for a level that cannot be parsed, and the
 * latest version for a version that cannot.
 */
export interface LabelPolicies {
  readonly enforce: LabelPolicy
  readonly audit: LabelPolicy
  readonly warn: LabelPolicy
  /** Errors in the labels. */
  readonly causes: readonly StatusCause[]
}

type Labels = Readonly<Record<string, string>>

const prefix = 'pod-security.kubernetes.io/'
const nothing: LabelPolicy = { level: 'privileged', version: 'latest' }
const levelText = `must be one of ${podSecurityLevels.join(', ')}`
const versionText = 'must be "latest" or "v1.x"'

/** Reads the labels; undefined if there are none, as in most namespaces. */
export function policiesOf(labels: Labels = {}): LabelPolicies | undefined {
  if (!Object.keys(labels).some((label) => label.startsWith(prefix))) return undefined
  const causes: StatusCause[] = []
  const enforce = policyOf(labels, 'enforce', 'restricted', causes)
  const audit = policyOf(labels, 'audit', 'privileged', causes)
  const asked = policyOf(labels, 'warn', 'privileged', causes)
  return { enforce, audit, warn: warnBy(labels, enforce, asked), causes }
}

function policyOf(labels: Labels, mode: string, otherwise: LabelPolicy['level'], causes: StatusCause[]): LabelPolicy {
  const read = <T>(suffix: string, parse: (text: string) => T | undefined, wrong: T, detail: string): T | undefined => {
    const label = `${prefix}${mode}${suffix}`
    const text = labels[label]
    if (text === undefined) return undefined
    const parsed = parse(text)
    if (parsed === undefined) causes.push(fieldInvalid(`metadata.labels[${label}]`, text, detail))
    return parsed ?? wrong
  }
  return {
    level: read('', tryPodSecurityLevel, otherwise, levelText) ?? nothing.level,
    version: read<LabelPolicy['version']>('-version', tryPodSecurityVersion, 'latest', versionText) ?? nothing.version,
  }
}

/** The policy for warnings. Without the label `warn`, it follows the enforced policy if that is stricter. */
function warnBy(labels: Labels, enforce: LabelPolicy, asked: LabelPolicy): LabelPolicy {
  if (labels[`${prefix}warn`] !== undefined || tryPodSecurityLevel(labels[`${prefix}enforce`] ?? '') === undefined)
    return asked
  if (strictness(enforce) <= strictness(asked)) return asked
  return {
    level: enforce.level,
    version: labels[`${prefix}warn-version`] === undefined ? enforce.version : asked.version,
  }
}

/** The rank of a policy's level: larger for a stricter level. */
export function strictness({ level }: PodSecurityPolicy): number {
  return podSecurityLevels.indexOf(level)
}
