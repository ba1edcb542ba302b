// Warnings about volumes: plugins that no longer work, and files of one volume whose paths overlap.
import type { V1Volume, V1VolumeProjection } from '@kubernetes/client-node'
import { goQuote } from '#apimachinery/text/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { claimResourceWarnings } from './fractional-byte-warnings.ts'

type Volume = Data<V1Volume>

/** Deprecated volume plugins: the member of the volume, and the warning. */
const obsoletePlugins: readonly (readonly [keyof Volume, string])[] = [
  ['photonPersistentDisk', 'deprecated in v1.11, non-functional in v1.16+'],
  ['gitRepo', 'deprecated in v1.11, and disabled by default in v1.33+'],
  ['scaleIO', 'deprecated in v1.16, non-functional in v1.22+'],
  ['flocker', 'deprecated in v1.22, non-functional in v1.25+'],
  ['storageos', 'deprecated in v1.22, non-functional in v1.25+'],
  ['quobyte', 'deprecated in v1.22, non-functional in v1.25+'],
  ['glusterfs', 'deprecated in v1.25, non-functional in v1.26+'],
  ['cephfs', 'deprecated in v1.28, non-functional in v1.31+'],
  ['rbd', 'deprecated in v1.28, non-functional in v1.31+'],
]

/** Upstream's name of a member in warnings, if it differs. */
const spelled: Readonly<Record<string, string>> = { storageos: 'storageOS' }

/** Warnings about the volumes at `path`. */
export function* volumeWarnings(path: string, volumes: readonly Volume[]): Iterable<string> {
  for (const [index, volume] of volumes.entries()) {
    const at = `${path}[${index}]`
    for (const [member, why] of obsoletePlugins)
      if (volume[member] !== undefined) yield `${at}.${spelled[member] ?? member}: ${why}`
    const claim = volume.ephemeral?.volumeClaimTemplate?.spec
    if (claim !== undefined)
      yield* claimResourceWarnings(`${at}.ephemeral.volumeClaimTemplate.spec.resources`, claim.resources)
  }
  yield* overlapWarnings(volumes)
}

interface File {
  readonly path: string
  /** The source that projects the file; empty if the volume has only one. */
  readonly source: string
}

/**
 * The most files in the volumes of a pod for which warnings are computed, because each file is compared with all other
 * files.
 */
const maxFiles = 1000

function* overlapWarnings(volumes: readonly Volume[]): Iterable<string> {
  let left = maxFiles
  for (const { name, configMap, secret, downwardAPI, projected } of volumes) {
    for (const [kind, items, of] of [
      ['ConfigMap', configMap?.items, configMap?.name],
      ['Secret', secret?.items, secret?.secretName],
      ['DownwardAPI', downwardAPI?.items, undefined],
    ] as const) {
      if (items === undefined) continue
      left -= items.length
      if (left < 0) return
      const about = kind === 'DownwardAPI' ? kind : `${kind} ${goQuote(of ?? '')}`
      yield* filesWarnings(`volume ${goQuote(name)} (${about})`, filesOf(items, ''), [])
    }
    if (projected === undefined) continue
    const about = `volume ${goQuote(name)} (Projected)`
    const known: Known[] = []
    for (const source of projected.sources ?? []) {
      if (Object.keys(source).length === 0) {
        yield `${about} has no sources provided`
        continue
      }
      const files = projectedFiles(source)
      left -= files.length
      if (left < 0) return
      yield* filesWarnings(about, files, known)
    }
  }
}

/** The files that a source projects. As upstream, the first member in this order counts. */
function projectedFiles(source: Data<V1VolumeProjection>): readonly File[] {
  const { configMap, secret, downwardAPI, serviceAccountToken, clusterTrustBundle } = source
  if (configMap?.items !== undefined) return filesOf(configMap.items, `ConfigMap ${goQuote(configMap.name ?? '')}`)
  if (secret?.items !== undefined) return filesOf(secret.items, `Secret ${goQuote(secret.name ?? '')}`)
  if (downwardAPI?.items !== undefined) return filesOf(downwardAPI.items, 'DownwardAPI')
  if (serviceAccountToken !== undefined) return [{ path: serviceAccountToken.path, source: 'ServiceAccountToken' }]
  if (clusterTrustBundle === undefined) return []
  const { name, signerName = '', path } = clusterTrustBundle
  return [{ path, source: `ClusterTrustBundle ${goQuote(name ?? signerName)}` }]
}

const filesOf = (items: readonly { readonly path: string }[], source: string): readonly File[] =>
  items.map(({ path }) => ({ path, source }))

/** A file that was already visited, with the path prefix of everything below it. */
interface Known {
  readonly below: string
  readonly text: string
}

/** Warnings about files whose paths overlap with earlier files. Adds the files to `known`. */
function* filesWarnings(about: string, files: readonly File[], known: Known[]): Iterable<string> {
  for (const { path: given, source } of files) {
    const path = given.replace(/\/+$/, '')
    const text = source === '' ? goQuote(path) : `${goQuote(path)} (${source})`
    const below = `${path}/`
    if (path === '') continue
    for (const other of known)
      if (other.below.startsWith(below) || below.startsWith(other.below))
        yield `${about}: overlapping paths: ${text} with ${other.text}`
    known.push({ below, text })
  }
}
