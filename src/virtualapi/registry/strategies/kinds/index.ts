// Which rules a built-in kind has.
import type { KindRules } from '../kind-rules.ts'
import { daemonSetRules } from './daemonset.ts'
import { jobRules } from './job.ts'
import { namespaceRules } from './namespace.ts'
import { podRules } from './pod.ts'
import { secretRules } from './secret.ts'
import { serviceRules } from './service.ts'

const table: Readonly<Record<string, KindRules>> = {
  'v1/Namespace': namespaceRules,
  'v1/Pod': podRules,
  'v1/Secret': secretRules,
  'v1/Service': serviceRules,
  'apps/v1/DaemonSet': daemonSetRules,
  'batch/v1/Job': jobRules,
}

const none: KindRules = {}

/** The rules of a kind; none for those that are only data. */
export function rulesOf(apiVersion: string, kind: string): KindRules {
  return table[`${apiVersion}/${kind}`] ?? none
}
