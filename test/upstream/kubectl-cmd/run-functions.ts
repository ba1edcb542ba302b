// Runs functions of the Kubernetes shell tests of kubectl against one cluster.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { runCommand } from '#test/support/index.ts'
import type { WorkingCopy } from './working-copy.ts'

export interface FunctionResult {
  readonly name: string
  readonly passed: boolean
  readonly seconds: number
  /** The end of its output, if it failed. */
  readonly message: string
  readonly logFile: string
}

export interface RunOptions {
  readonly copy: WorkingCopy
  readonly server: string
  readonly token: string
  /** A PEM certificate, for tests that put one into a kubeconfig. */
  readonly certificate: string
  /** Directory of the logs. */
  readonly logDir: string
  /** Timeout of one function, seconds. */
  readonly timeoutSeconds: number
  readonly signal: AbortSignal
}

const driver = join(import.meta.dirname, 'driver.sh')

/** Runs one function to its end, whatever the result. */
export async function runFunction(name: string, options: RunOptions): Promise<FunctionResult> {
  const { copy, server, token, certificate, logDir, timeoutSeconds, signal } = options
  const started = performance.now()
  rmSync(join(copy.dir, 'tmp'), { recursive: true, force: true })
  mkdirSync(join(copy.dir, 'tmp'))
  writeFileSync(join(copy.dir, 'tmp', 'apiserver.crt'), certificate)
  // timeout(1) also ends the children of the function.
  const limit = ['--kill-after=5', String(timeoutSeconds), driver, name, server, token]
  const { code, stdout } = await runCommand('bash', ['-c', 'exec "$@" 2>&1', 'bash', 'timeout', ...limit], {
    cwd: copy.dir,
    env: {
      KUBECONFIG: undefined,
      KUBERNETES_SERVICE_HOST: undefined,
      KUBERNETES_SERVICE_PORT: undefined,
      // The scripts read it under `set -o nounset`; a container may have none.
      USER: userInfo().username,
      WHAT: undefined,
    },
    expectCode: 'any',
    timeoutMs: (timeoutSeconds + 30) * 1000,
    signal,
  })
  mkdirSync(logDir, { recursive: true })
  const logFile = join(logDir, `${name}.log`)
  writeFileSync(logFile, stdout)
  const seconds = (performance.now() - started) / 1000
  const ended = code === 124 ? `\nnot finished after ${timeoutSeconds} s` : ''
  return { name, passed: code === 0, seconds, message: code === 0 ? '' : failureOf(stdout) + ended, logFile }
}

/** The most useful lines of the output: the failed assertion, or else the end. */
export function failureOf(output: string): string {
  const lines = output
    .replaceAll(/\u001b(\[[0-9;]*m|\(B)/g, '')
    .split('\n')
    .filter((line) => line.trim() !== '')
  const failed = lines.findIndex((line) => line.includes('FAIL!'))
  return (failed < 0 ? lines.slice(-12) : lines.slice(Math.max(0, failed - 3), failed + 12)).join('\n')
}
