// The names that shells complete from the installation: logical clusters, members and kinds.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { logicalClusters, memberClusters } from '#crds/index.ts'
import { workloadKindNames } from '#cli/across/workloads.ts'
import { directOf } from '#cli/across/direct.ts'
import { resourcesIn } from '#cli/across/find-resource.ts'
import type { InstallationFlags } from './flags.ts'
import { openDirect, openInstallation, type Installation } from './installation.ts'
import type { Candidate, Value } from './values.ts'

/** A person waits for it. */
const timeoutMs = 2000
/** More names help nobody. */
const maxNames = 500

/** The candidates for the last of `words`. Rejects if no installation is found, or if it does not answer in time. */
export async function completedValues(value: Value, words: readonly string[]): Promise<Candidate[]> {
  const typed = words.at(-1) ?? ''
  if (value === 'workload')
    return prefixed(
      typed,
      [...workloadKindNames(), 'namespace'].map((kind) => `${kind}/`),
    )
  const signal = AbortSignal.timeout(timeoutMs)
  await using installation = await openInstallation(flagsIn(words), signal)
  return await candidatesOf(value, typed, { installation, signal })
}

interface Source {
  readonly installation: Installation
  readonly signal: AbortSignal
}

async function candidatesOf(value: Exclude<Value, 'workload'>, typed: string, source: Source): Promise<Candidate[]> {
  if (value === 'kind') return kinds(typed, source)
  if (value === 'member') return afterCommas(typed, await namesOf(memberClusters, source))
  const clusters = await namesOf(logicalClusters, source)
  if (value === 'used') return prefixed(typed, [...clusters, '-'])
  if (value !== 'explained') return afterCommas(typed, clusters)
  return prefixed(typed, [...clusters, 'member/', ...workloadKindNames().map((kind) => `${kind}/`)])
}

async function namesOf(
  gvr: typeof logicalClusters | typeof memberClusters,
  { installation, signal }: Source,
): Promise<string[]> {
  const { items } = await installation.clusters.list<KubeObject>(gvr, { limit: maxNames, metadataOnly: true, signal })
  return items.flatMap(({ metadata }) => metadata.name ?? [])
}

async function kinds(typed: string, { installation, signal }: Source): Promise<Candidate[]> {
  await using transport = await openDirect(installation)
  const [first] =
    installation.found.rootDir === undefined ? await namesOf(logicalClusters, { installation, signal }) : ['root']
  const resources = first === undefined ? [] : await resourcesIn(directOf(transport, signal), first)
  const names = new Set(resources.map(({ gvr }) => gvr.resource))
  return prefixed(typed, ['logicalclusters', 'members', ...names])
}

function prefixed(typed: string, words: readonly string[]): Candidate[] {
  return [...new Set(words)].filter((word) => word.startsWith(typed)).map((word) => ({ word, description: '' }))
}

/** Candidates for the last name of a list with commas. */
function afterCommas(typed: string, names: readonly string[]): Candidate[] {
  const before = typed.slice(0, typed.lastIndexOf(',') + 1)
  return prefixed(
    typed,
    names.map((name) => `${before}${name}`),
  )
}

/** The flags of the installation among the words that are typed already. */
function flagsIn(words: readonly string[]): InstallationFlags {
  const valueOf = (flag: string): string | undefined => {
    const index = words.indexOf(flag)
    return index < 0 ? words.find((word) => word.startsWith(`${flag}=`))?.slice(flag.length + 1) : words[index + 1]
  }
  const [rootDir, hostKubeconfig, hostContext] = ['--root-dir', '--host-kubeconfig', '--host-context'].map(valueOf)
  if (rootDir !== undefined) return { rootDir }
  return { ...(hostKubeconfig !== undefined && { hostKubeconfig }), ...(hostContext !== undefined && { hostContext }) }
}
