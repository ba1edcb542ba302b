// Builds kcp as one executable file for Linux: Node's official binary with the program in it (single executable
// application of Node). At its first start it unpacks the program below the user's cache directory.
import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createHash } from 'node:crypto'
import { constants, zstdCompressSync } from 'node:zlib'
import { build } from 'esbuild'
import { repositoryRoot } from '#test/support/index.ts'
import type { TarEntry } from '#test/support/tar.ts'

/** The fuse that postject turns, as Node's documentation of single executable applications gives it. */
const fuse = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2'

export interface SingleFile {
  /** The Node binary to take. */
  readonly node: string
  readonly files: readonly TarEntry[]
  readonly version: string
  readonly out: string
}

/** Writes the executable. Throws if Node cannot make the blob. */
export async function writeSingleFile({ node, files, version, out }: SingleFile): Promise<void> {
  const work = mkdtempSync(join(tmpdir(), 'kcp-single-file-'))
  try {
    const archive = archiveOf(files)
    const id = `${version}-${createHash('sha256').update(archive).digest('hex').slice(0, 16)}`
    writeFileSync(join(work, 'program'), archive)
    await build({
      entryPoints: [join(import.meta.dirname, 'unpack-and-run.ts')],
      outfile: join(work, 'main.cjs'),
      bundle: true,
      format: 'cjs',
      platform: 'node',
      target: 'node24',
      define: { programId: JSON.stringify(id) },
    })
    const config = {
      main: join(work, 'main.cjs'),
      output: join(work, 'blob'),
      disableExperimentalSEAWarning: true,
      useSnapshot: false,
      useCodeCache: false,
      execArgv: ['--max-http-header-size=262144', '--disable-warning=ExperimentalWarning'],
      assets: { program: join(work, 'program') },
    }
    writeFileSync(join(work, 'sea.json'), JSON.stringify(config))
    runNode(node, ['--experimental-sea-config', join(work, 'sea.json')])
    const temporary = join(work, 'kcp')
    copyFileSync(node, temporary)
    chmodSync(temporary, 0o755)
    // postject prints warnings about sections that it does not know.
    const postject = join(repositoryRoot, 'node_modules/postject/dist/cli.js')
    runNode(process.execPath, [postject, temporary, 'NODE_SEA_BLOB', join(work, 'blob'), '--sentinel-fuse', fuse])
    copyFileSync(temporary, out)
    chmodSync(out, 0o755)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

function runNode(node: string, args: readonly string[]): void {
  const { status, stderr } = spawnSync(node, args)
  if (status !== 0) throw new Error(`${node} ${args.join(' ')}: ${stderr.toString()}`)
}

/** An index of paths and sizes as a line of JSON, then all contents, compressed. unpack-and-run.ts reads it. */
function archiveOf(files: readonly TarEntry[]): Buffer {
  const contents = files.flatMap((entry) => ('file' in entry ? [{ path: entry.path, file: entry.file }] : []))
  const index = contents.map(({ path, file }) => ({ path, size: statSync(file).size }))
  const all = Buffer.concat([
    Buffer.from(`${JSON.stringify(index)}\n`),
    ...contents.map(({ file }) => readFileSync(file)),
  ])
  return zstdCompressSync(all, { params: { [constants.ZSTD_c_compressionLevel]: 15 } })
}
