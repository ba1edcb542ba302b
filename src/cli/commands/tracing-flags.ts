// The flags for traces, shared by the commands that run a process of ours.
import { InvalidArgumentError, type Command } from 'commander'

/** As commander gives them. */
export interface TracingFlags {
  readonly tracingEndpoint?: string
  readonly tracingSamplingRatePerMillion: number
}

const million = 1_000_000

/** Adds `--tracing-endpoint` and the sampling rate. */
export function withTracingFlags(command: Command): Command {
  return command
    .option(
      '--tracing-endpoint <url>',
      'send traces to this OpenTelemetry collector, as OTLP over HTTP: http://HOST:4318 (default: nothing is traced)',
      parseEndpoint,
    )
    .option(
      '--tracing-sampling-rate-per-million <count>',
      'how many of a million traces that begin in this process are recorded; a trace that a client of an administrator began is ' +
        'recorded if the client records it',
      parseRate,
      0,
    )
}

function parseEndpoint(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new InvalidArgumentError('an endpoint is a URL such as http://collector:4318')
  // It would be in the list of processes.
  if (url.username !== '' || url.password !== '') throw new InvalidArgumentError('the URL may not contain credentials')
  return text
}

function parseRate(text: string): number {
  const rate = /^[0-9]+$/.test(text) ? Number(text) : NaN
  if (!(rate <= million)) throw new InvalidArgumentError(`a rate is a number from 0 to ${million}`)
  return rate
}
