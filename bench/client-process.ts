// Runs a client of a measurement in a process of its own, so that its work delays neither the server nor the timer.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setPriority } from 'node:os'

/** Timeout of an answer, milliseconds: longer than opening 10,000 watches takes. */
const responseMs = 120_000

export interface ClientProcess<To, From> extends AsyncDisposable {
  readonly pid: number
  /** Sends a message and resolves with the next one from the process. Rejects when the process ends first. */
  ask(message: To): Promise<From>
}

/**
 * Forks a script beside this file. `lowPriority`: at a low priority, as if it ran on another machine; on few cores it
 * would otherwise take processor time from the server under test.
 */
export function startClientProcess<To, From>(
  script: string,
  { lowPriority = false }: { lowPriority?: boolean } = {},
): ClientProcess<To, From> {
  const child = fork(new URL(script, import.meta.url), { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const { pid } = child
  if (pid === undefined) throw new Error(`"${script}" did not start`)
  if (lowPriority) setPriority(pid, 5)
  return {
    pid,
    async ask(message) {
      const gone = new AbortController()
      const ended = (): void => gone.abort(new Error(`"${script}" ended`))
      const timer = setTimeout(() => gone.abort(new Error(`"${script}" does not answer`)), responseMs)
      child.once('exit', ended)
      try {
        child.send(message as object)
        const [answer] = (await once(child, 'message', { signal: gone.signal })) as [From]
        return answer
      } finally {
        clearTimeout(timer)
        child.off('exit', ended)
      }
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
    },
  }
}
