// The main script of the single file: unpacks the program below the cache directory, once for each version, and runs
// it.
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { getRawAsset } from 'node:sea'
import { pathToFileURL } from 'node:url'
import { constants, Script } from 'node:vm'
import { zstdDecompressSync } from 'node:zlib'

/** The version and the hash of the program, which the build defines. */
declare const programId: string

const cache = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache')
const home = join(cache, 'kcp', 'program', programId)
if (!existsSync(home)) unpack()
// Which program to run: a link of the name of another program to this file runs that one.
const name = process.argv0.replace(/^.*\//, '')
const isTestProgram = name === 'kube-apiserver' || name === 'etcd'
const main = join(home, 'app/dist/src/cli', isTestProgram ? 'test-programs/main.js' : 'main.js')
process.argv.splice(1, 1, main, ...(isTestProgram ? [name] : []))
const load = new Script(`import(${JSON.stringify(pathToFileURL(main).href)})`, {
  importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
})
void load.runInThisContext()

/** Unpacks into a folder beside the final one, which then takes its name: two first starts do not disturb each other. */
function unpack(): void {
  mkdirSync(dirname(home), { recursive: true, mode: 0o700 })
  const temporary = mkdtempSync(`${home}-`)
  try {
    const all = zstdDecompressSync(Buffer.from(getRawAsset('program')))
    let at = all.indexOf('\n') + 1
    const index = JSON.parse(all.toString('utf8', 0, at)) as readonly { path: string; size: number }[]
    for (const { path, size } of index) {
      const file = join(temporary, path)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, all.subarray(at, at + size))
      at += size
    }
    renameSync(temporary, home)
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true })
    // Another start was faster.
    if (!existsSync(home)) throw error
  }
}
