// A mover as a process with the rights of its pod. Needs a build.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { createMoverControl, type MoverControl, type Party, type PartyCredentials } from '#mover/index.ts'
import { dialPort } from './mover-pair.ts'

const program = resolve(import.meta.dirname, '../../../dist/src/cli/main.js')
/** The rights of the pod of a mover. */
const rights = ['chown', 'dac_override', 'fowner', 'fsetid', 'setfcap', 'mknod']

export class MoverProcess {
  readonly #root: string
  readonly #role: 'source' | 'target'
  readonly #credentials: Readonly<Record<Party, PartyCredentials>>
  readonly #user: number
  #child: ChildProcess | undefined
  #port = 0

  constructor(
    root: string,
    role: 'source' | 'target',
    credentials: Readonly<Record<Party, PartyCredentials>>,
    { user = 0 } = {},
  ) {
    this.#user = user
    this.#root = root
    this.#role = role
    this.#credentials = credentials
    const folder = join(root, `${role}-credentials`)
    mkdirSync(folder)
    for (const [name, text] of Object.entries(credentials[role])) writeFileSync(join(folder, name), text as string)
  }

  get port(): number {
    return this.#port
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  get control(): MoverControl {
    return createMoverControl({ credentials: this.#credentials.control, role: this.#role, dial: dialPort(this.#port) })
  }

  async start(): Promise<void> {
    const role = this.#role
    const flags = [
      '--role',
      role,
      '--volume',
      join(this.#root, role),
      '--listen',
      '127.0.0.1:0',
      '--log-level',
      'error',
    ]
    const command = [
      process.execPath,
      program,
      'mover',
      ...flags,
      '--credentials',
      join(this.#root, `${role}-credentials`),
    ]
    const set = rights.map((each) => `+${each}`).join()
    const identity = [`--reuid=${this.#user}`, `--regid=${this.#user}`, '--clear-groups']
    const child = spawn('setpriv', [`--bounding-set=-all,${set}`, '--inh-caps=-all', ...identity, ...command], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    this.#child = child
    for await (const line of createInterface({ input: child.stdout })) {
      const found = /ready on port (\d+)/.exec(line)
      if (found === null) continue
      this.#port = Number(found[1])
      return
    }
    throw new Error('the mover has ended')
  }

  async kill(): Promise<void> {
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
}
