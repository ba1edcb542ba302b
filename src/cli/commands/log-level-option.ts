// The `--log-level` flag, shared by all commands that run a server or controllers.
import { Option } from 'commander'
import type { LogLevel } from '#telemetry/index.ts'

/** `--log-level` with its default. */
export function logLevelOption(usual: LogLevel): Option {
  return new Option('--log-level <level>', 'how much is logged')
    .choices(['debug', 'info', 'warn', 'error'])
    .default(usual)
}
