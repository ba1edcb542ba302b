// Records kubectl's output on a real cluster for the application sets.
//   node test/manifests/recording.ts      records missing sets, with the pinned kube-apiserver and kubectl
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startCluster } from '#test/support/index.ts'
import { applicationSets } from './application-sets.ts'
import { explainKinds, live, writeEditor, type Home, type Transcript } from './manifest-life.ts'

export interface Recording {
  /** By title of the set. */
  readonly transcripts: Readonly<Record<string, Transcript>>
  /** Digests of the explain output, by kind. */
  readonly explained: Readonly<Record<string, string>>
}

const file = join(import.meta.dirname, 'recorded.json')

export function readRecording(): Recording {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Recording) : { transcripts: {}, explained: {} }
}

async function record(): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'kcp-manifests-'))
  // No controllers run here: nothing creates ServiceAccounts, and nothing removes protection finalizers.
  const flags = { 'kube-apiserver': ['--disable-admission-plugins=ServiceAccount,StorageObjectInUseProtection'] }
  await using real = await startCluster({ name: 'real', flags })
  try {
    const home: Home = { kubeconfig: real.kubeconfig, hasControllers: false }
    const editor = writeEditor(dir)
    const sets = await applicationSets(dir)
    const { transcripts: known } = readRecording()
    const transcripts: Record<string, Transcript> = {}
    const write = (recording: Recording): void => writeFileSync(file, `${JSON.stringify(recording, null, 1)}\n`)
    for (const set of sets) {
      transcripts[set.title] = known[set.title] ?? (await live(set, home, { editor }))
      console.error(set.title)
      write({ transcripts: { ...known, ...transcripts }, explained: {} })
    }
    write({ transcripts, explained: await explainKinds(sets, home) })
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

if (import.meta.main) await record()
