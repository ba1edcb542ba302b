// A long-running program of a test: started under a run's record, with its output in a file, ended by pid.

import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { identifyProcess, isAlive, killProcesses, signalProcess, type ProcessIdentity } from './process-identity.ts'
import { type Resource } from './resource.ts'
import { acquireRun, type Run } from './run.ts'
import { runVariable, scopeVariable } from './run-record.ts'
import { waitFor } from './wait-for.ts'
import { childSignal } from '#async/index.ts'

export interface ProcessSpec {
  /** For messages and the log file. */
  name: string
  command: string
  args: readonly string[]
  /** Added to our own environment; undefined removes a variable. */
  env?: Record<string, string | undefined>
  cwd?: string
  /** Standard output and error; in the run's folder by default. Restarts append. */
  logFile?: string
  /**
   * Called until it returns true; the start fails with the end of the log if the process ends first or time runs out.
   */
  ready?: (signal: AbortSignal) => boolean | Promise<boolean>
  /** 60,000 by default. */
  readyDeadlineMs?: number
  /** Between SIGTERM and SIGKILL at stop; 10,000 by default. */
  graceMs?: number
}

export interface StartOptions {
  /** The run it belongs to; that of this test process by default. */
  run?: Run
  /** The scope with which it is undone; its own name by default. */
  scope?: string
  signal?: AbortSignal | undefined
}

export interface ExitStatus {
  code: number | null
  signal: NodeJS.Signals | null
}

/** Starts a program and resolves once it is ready. */
export async function startProcess(
  spec: ProcessSpec,
  { run, scope, signal }: StartOptions = {},
): Promise<ManagedProcess> {
  const held = run === undefined ? await acquireRun({ signal }) : { run, release: async () => undefined }
  const managed = new ManagedProcess(spec, held.run, scope ?? spec.name, held.release)
  await managed.start(signal)
  return managed
}

export class ManagedProcess implements AsyncDisposable {
  readonly spec: ProcessSpec
  readonly logFile: string
  readonly #run: Run
  readonly #scope: string
  readonly #release: () => Promise<void>
  #child: ChildProcess | undefined
  #identity: ProcessIdentity | undefined
  #entry: Resource | undefined
  #exited: Promise<ExitStatus> = Promise.resolve({ code: null, signal: null })

  /** For startProcess. */
  constructor(spec: ProcessSpec, run: Run, scope: string, release: () => Promise<void>) {
    this.spec = spec
    this.logFile = spec.logFile ?? join(run.dir, 'log', `${spec.name}.log`)
    this.#run = run
    this.#scope = scope
    this.#release = release
  }

  /** Throws when it is not running. */
  get pid(): number {
    if (this.#identity === undefined) throw new Error(`"${this.spec.name}" was never started`)
    return this.#identity.pid
  }

  get running(): boolean {
    return this.#identity !== undefined && isAlive(this.#identity)
  }

  /** Resolves with its exit status once it has ended. */
  get exited(): Promise<ExitStatus> {
    return this.#exited
  }

  /** Everything it wrote so far. */
  log(): string {
    return existsSync(this.logFile) ? readFileSync(this.logFile, 'utf8') : ''
  }

  /** Restarts it after stop or kill, with the same arguments. A failed start leaves no process. */
  async start(signal?: AbortSignal): Promise<void> {
    if (this.running) throw new Error(`"${this.spec.name}" is already running`)
    signal?.throwIfAborted()
    const { name, ready, readyDeadlineMs = 60_000 } = this.spec
    try {
      await this.#spawn()
      if (ready === undefined) return
      using waiting = childSignal(signal ?? never)
      void this.#exited.then((status) =>
        waiting.abort(new Error(`it ended with ${exitText(status)} before it was ready`)),
      )
      const what = `"${name}" to be ready`
      await waitFor(ready, { what, deadlineMs: readyDeadlineMs, signal: waiting.signal, intervalMs: 50 })
    } catch (error) {
      const output = this.log().trim().split('\n').slice(-15).join('\n')
      await this.kill()
      await this.#release()
      if (signal?.aborted === true) throw signal.reason as Error
      const why = error instanceof Error ? error.message : String(error)
      throw new Error(`could not start "${name}": ${why}\n${output}`, { cause: error })
    }
  }

  /** Sends a signal and does not wait. */
  send(signal: NodeJS.Signals): void {
    if (this.#identity !== undefined) signalProcess(this.#identity, signal)
  }

  /** Sends SIGKILL, as in a crash, and resolves when it is gone. `start` restarts it. */
  async kill(): Promise<ExitStatus> {
    return this.#end(0)
  }

  /** Sends SIGTERM, then SIGKILL after the grace period, and resolves with the exit status. May be called twice. */
  async stop(): Promise<ExitStatus> {
    const status = await this.#end(this.spec.graceMs ?? 10_000)
    await this.#release()
    return status
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  async #spawn(): Promise<void> {
    const { command, args, env = {}, cwd } = this.spec
    mkdirSync(dirname(this.logFile), { recursive: true })
    const output = openSync(this.logFile, 'a')
    try {
      const child = spawn(command, [...args], {
        ...(cwd === undefined ? {} : { cwd }),
        env: { ...process.env, ...env, [runVariable]: this.#run.id, [scopeVariable]: this.#scope },
        stdio: ['ignore', output, output],
        detached: true, // in its own session: ^C reaches only us, and we end it in order
      })
      this.#child = child
      this.#exited = new Promise((resolve) => {
        child.once('exit', (code, signal) => resolve({ code, signal }))
      })
      await once(child, 'spawn') // rejects with the error event
      child.unref()
      this.#identity = child.pid === undefined ? undefined : identifyProcess(child.pid)
      if (this.#identity === undefined) throw new Error(`it ended with ${exitText(await this.#exited)} at once`)
      this.#entry = { type: 'process', name: this.spec.name, scope: this.#scope, ...this.#identity }
      this.#run.add(this.#entry)
    } finally {
      closeSync(output)
    }
  }

  async #end(graceMs: number): Promise<ExitStatus> {
    if (this.#identity === undefined) return { code: null, signal: null }
    const identity = this.#identity
    if (graceMs > 0 && signalProcess(identity, 'SIGTERM')) {
      const gone = waitFor(() => !isAlive(identity), { what: 'it to end', deadlineMs: graceMs, intervalMs: 20 })
      await gone.catch(() => undefined)
    }
    await killProcesses([identity])
    this.#child?.ref() // keeps the event loop alive until the exit event arrives
    if (this.#entry !== undefined) this.#run.forget(this.#entry)
    return this.#exited
  }
}

const never = new AbortController().signal

const exitText = ({ code, signal }: ExitStatus): string => (signal === null ? `code ${String(code)}` : signal)
