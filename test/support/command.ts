// Runs a program to its end and returns its output.

import { spawn } from 'node:child_process'

export interface CommandOptions {
  input?: string | Buffer
  cwd?: string
  /** Added to our own environment; undefined removes a variable. */
  env?: Record<string, string | undefined>
  /** The exit code of success; 0 by default, `any` if the caller decides. */
  expectCode?: number | 'any'
  /** The command is killed after this; 120,000 by default. */
  timeoutMs?: number
  signal?: AbortSignal | undefined
}

export interface CommandResult {
  code: number
  stdout: string
  stderr: string
}

const maxOutputBytes = 64 * 1024 * 1024

/** Runs `command`. Rejects with its stderr when it exits with another code than expected, or with signal.reason. */
export async function runCommand(
  command: string,
  args: readonly string[],
  { input, cwd, env = {}, expectCode = 0, timeoutMs = 120_000, signal }: CommandOptions = {},
): Promise<CommandResult> {
  signal?.throwIfAborted()
  const child = spawn(command, [...args], {
    ...(cwd === undefined ? {} : { cwd }),
    env: { ...process.env, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const title = `"${[command, ...args].join(' ')}"`
  const out: Buffer[] = []
  const err: Buffer[] = []
  let bytes = 0
  let problem: Error | undefined
  const end = (reason: Error): void => {
    problem ??= reason
    child.kill('SIGKILL')
  }
  const collect =
    (chunks: Buffer[]) =>
    (chunk: Buffer): void => {
      bytes += chunk.length
      if (bytes > maxOutputBytes) end(new Error(`${title} wrote more than ${maxOutputBytes} bytes`))
      else chunks.push(chunk)
    }
  const onAbort = (): void => end(signal?.reason as Error)
  signal?.addEventListener('abort', onAbort, { once: true })
  const timer = setTimeout(() => end(new Error(`${title} did not end within ${timeoutMs} ms`)), timeoutMs)
  child.stdout.on('data', collect(out))
  child.stderr.on('data', collect(err))
  child.stdin.on('error', () => undefined) // a program may close its stdin unread
  child.stdin.end(input)
  try {
    const code = await new Promise<number>((resolve, reject) => {
      child.once('error', (cause) => reject(new Error(`could not run ${title}: ${cause.message}`, { cause })))
      child.once('close', (exitCode) => resolve(exitCode ?? -1))
    })
    if (problem !== undefined) throw problem
    const result = { code, stdout: Buffer.concat(out).toString(), stderr: Buffer.concat(err).toString() }
    if (expectCode !== 'any' && code !== expectCode) {
      const output = (result.stderr + result.stdout).trim().slice(-4000)
      throw new Error(`${title} ended with code ${code}, not ${expectCode}: ${output}`)
    }
    return result
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
  }
}
