// The flag of how much is logged, the same wherever a process runs.
import { Option } from 'commander'
import type { LogLevel } from '../../telemetry/index.ts'

/** `--log-level`. */
export function logLevelOption(usual: LogLevel): Option {
  return new Option('--log-level <level>', 'how much is logged')
    .choices(['debug', 'info', 'warn', 'error'])
    .default(usual)
}
