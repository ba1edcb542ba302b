// A bound of memory for one program of a test, as a container has it. Needs root and a writable hierarchy of cgroups.
import { mkdirSync, rmSync, rmdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface MemoryGroup extends AsyncDisposable {
  /** For the environment of a bash script: it joins the group, and so does what it starts. */
  readonly env: Readonly<Record<string, string>>
}

let made = 0

/** Makes the group, or tells why it cannot be made. Dispose of it when its processes have ended. */
export function memoryGroup(mebibytes: number): MemoryGroup | string {
  const name = `kcp-test-${process.pid}-${++made}`
  const v1 = join('/sys/fs/cgroup/memory', name)
  const v2 = join('/sys/fs/cgroup', name)
  const bytes = String(mebibytes * 1024 * 1024)
  const failures: string[] = []
  for (const [folder, file] of [
    [v1, 'memory.limit_in_bytes'],
    [v2, 'memory.max'],
  ] as const)
    try {
      mkdirSync(folder)
      try {
        writeFileSync(join(folder, file), bytes)
        return groupOf(folder, join(tmpdir(), name))
      } catch (error) {
        rmdirSync(folder)
        throw error
      }
    } catch (error) {
      failures.push(String(error))
    }
  return `memory of a program cannot be bounded here: ${failures.join('; ')}`
}

function groupOf(folder: string, script: string): MemoryGroup {
  // Bash runs this file before a script.
  writeFileSync(script, `echo $$ > ${join(folder, 'cgroup.procs')}\nunset BASH_ENV\n`)
  return {
    env: { BASH_ENV: script },
    [Symbol.asyncDispose]: () => {
      rmSync(script, { force: true })
      rmdirSync(folder)
      return Promise.resolve()
    },
  }
}
