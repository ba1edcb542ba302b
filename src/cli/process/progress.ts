// Progress on standard error, for whatever takes more than a second: a line that changes on a terminal, a line for each
// change elsewhere.

export interface Progress extends Disposable {
  /** Says what is going on now. */
  tell(text: string): void
}

/** Milliseconds before the first line. */
const quietMs = 1000
/** Milliseconds between two lines where there is no terminal. */
const lineMs = 2000

/** Begins to tell progress. Dispose of it before the result is printed. */
export function startProgress(output: NodeJS.WriteStream = process.stderr): Progress {
  const began = Date.now()
  let [shown, shownAt] = ['', 0]
  let latest = ''
  const show = (): void => {
    const now = Date.now()
    if (latest === '' || now - began < quietMs) return
    if (output.isTTY) output.write(`\r\u001b[K${cut(latest, output.columns)}`)
    else if (latest !== shown && now - shownAt >= lineMs) output.write(`${latest}\n`)
    else return
    ;[shown, shownAt] = [latest, now]
  }
  const timer = setInterval(show, 200).unref()
  return {
    tell(text) {
      latest = text
      show()
    },
    [Symbol.dispose]() {
      clearInterval(timer)
      if (output.isTTY && shown !== '') output.write('\r\u001b[K')
    },
  }
}

function cut(text: string, width: number): string {
  return text.length < width ? text : `${text.slice(0, Math.max(0, width - 2))}…`
}
