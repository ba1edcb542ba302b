// The ServiceAccounts that the pods of a workload use: that of the present template and, for the time of a rollout,
// those of former templates.
import { isJsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import { formerAccountsAnnotation, parseAnnotation } from './sync-contract.ts'
import { templateOf } from './workload-kinds.ts'

/** How long the pods of a former template may run: the longest rollout in which they keep access to the API. */
const rolloutMs = 24 * 3600_000
/** How many former ServiceAccounts are remembered. The oldest are forgotten first. */
const maxFormer = 8

/** The ServiceAccount in the pod template of a workload; undefined if it has no template. */
export function serviceAccountOf(workload: { readonly kind: string }): string | undefined {
  const template = templateOf(workload)
  const spec = isJsonObject(template) ? template['spec'] : undefined
  if (!isJsonObject(spec)) return undefined
  const name = spec['serviceAccountName']
  return typeof name === 'string' && name !== '' ? name : 'default'
}

/** By name: until when pods of the workload may run as this ServiceAccount, wall clock in milliseconds. */
export function serviceAccountsOf(workload: KubeObject): Map<string, number> {
  const accounts = formerAccounts(workload)
  const current = serviceAccountOf(workload)
  if (current !== undefined) accounts.set(current, Infinity)
  return accounts
}

/**
 * The value of formerAccountsAnnotation for a workload whose template changed from that of `old`; undefined if there is
 * no former ServiceAccount.
 */
export function formerAccountsText(workload: KubeObject, old: KubeObject, now: number): string | undefined {
  const accounts = new Map([...formerAccounts(old)].filter(([, until]) => now < until))
  const [before, after] = [serviceAccountOf(old), serviceAccountOf(workload)]
  if (before !== undefined && before !== after) {
    accounts.delete(before)
    accounts.set(before, now + rolloutMs)
  }
  if (after !== undefined) accounts.delete(after)
  if (accounts.size === 0) return undefined
  const entries = [...accounts].slice(-maxFormer).map(([name, until]) => [name, new Date(until).toISOString()])
  return JSON.stringify(Object.fromEntries(entries))
}

function formerAccounts(workload: KubeObject): Map<string, number> {
  const found = new Map<string, number>()
  for (const [name, until] of Object.entries(parseAnnotation(workload, formerAccountsAnnotation)))
    if (typeof until === 'string' && !Number.isNaN(Date.parse(until))) found.set(name, Date.parse(until))
  return found
}
