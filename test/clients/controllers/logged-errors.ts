// Other people's programs tell in their logs what a server did not do for them.

/** Errors that are expected, each with the reason, as patterns of the log line. */
export type Explained = readonly (readonly [pattern: RegExp, why: string])[]

/** Fails with the lines of a log that report an error or a panic and that no pattern explains. */
export function expectNoUnexplainedErrors(log: string, explained: Explained, cluster: string): void {
  const lines = unexplainedErrors(log, explained)
  if (lines.length > 0) throw new Error(`unexplained errors in ${cluster}:\n${lines.join('\n')}`)
}

/** Understands the JSON of zap and zerolog, klog's letters, and the levels of logfmt. */
function unexplainedErrors(log: string, explained: Explained): string[] {
  const isError =
    /"level":"(error|fatal|panic|dpanic)"|^[EF]\d{4} |\blevel=(error|fatal|ERROR)|\tERROR\t|^panic: |\bERR\b/
  return log.split('\n').filter((line) => isError.test(line) && !explained.some(([pattern]) => pattern.test(line)))
}
