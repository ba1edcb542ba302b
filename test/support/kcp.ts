// Runs our own program as a user does: `bin/kcp` of the checkout.

import { accessSync, constants } from 'node:fs'
import { dirname, join } from 'node:path'
import { repositoryRoot } from './cache-dir.ts'
import { runCommand, type CommandOptions, type CommandResult } from './command.ts'
import { startProcess, type ManagedProcess, type ProcessSpec, type StartOptions } from './process.ts'

export const kcpProgram = join(repositoryRoot, 'bin', 'kcp')

/** `command`: another program than `bin/kcp` of this checkout. */
export type KcpOptions = Partial<Omit<ProcessSpec, 'args'>> & StartOptions

let started = 0

/**
 * Starts `bin/kcp ARGS` under the test's Node and resolves once `ready` returns true. `stop` sends SIGTERM, and SIGKILL
 * after the grace period; `kill` is a crash; `start` restarts it with the same arguments.
 */
export async function startKcp(args: readonly string[], options: KcpOptions = {}): Promise<ManagedProcess> {
  const { run, scope, signal, name = `kcp-${args[0] ?? 'none'}-${++started}`, env = {}, ...rest } = options
  accessSync(kcpProgram, constants.X_OK) // rejects with the path that is missing
  return startProcess(
    { name, command: kcpProgram, args, env: { ...kcpEnvironment(), ...env }, ...rest },
    { signal, ...(run === undefined ? {} : { run }), ...(scope === undefined ? {} : { scope }) },
  )
}

/** Runs `bin/kcp ARGS` to its end. */
export async function runKcp(args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  return runCommand(kcpProgram, args, { ...options, env: { ...kcpEnvironment(), ...options.env } })
}

/**
 * Puts the Node that runs the tests first in PATH and hides the user's own cluster. The hundreds of processes that
 * tests start share what Node has compiled: 0.1 s of each `kcp start`.
 */
function kcpEnvironment(): Record<string, string | undefined> {
  return {
    PATH: `${dirname(process.execPath)}:${process.env.PATH ?? ''}`,
    KUBECONFIG: undefined,
    NODE_COMPILE_CACHE: join(repositoryRoot, 'dist', 'compile-cache'),
  }
}
