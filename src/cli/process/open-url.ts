// The browser of this machine.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sleep } from '#async/index.ts'
import { ExitError } from './exit-error.ts'

/** How long the file with the link stays, for a browser that starts slowly. */
const fileMs = 5000

/**
 * Opens the URL: by a file that leads to it, because other users can read the arguments of programs; with `command`, as
 * the argument of that program. The file stays until `opened` aborts, five seconds at most. Rejects with ExitError if there
 * is no such program.
 */
export async function openUrl(
  url: string,
  { command, opened = new AbortController().signal }: { readonly command?: string; readonly opened?: AbortSignal } = {},
): Promise<void> {
  if (command !== undefined) {
    await start(command, url)
    return
  }
  const folder = await mkdtemp(join(tmpdir(), 'kcp-open-'))
  try {
    const file = join(folder, 'kcp.html')
    const escaped = url.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
    await writeFile(file, `<!doctype html><meta http-equiv="refresh" content="0;url=${escaped}">\n`, { mode: 0o600 })
    await start(process.platform === 'darwin' ? 'open' : 'xdg-open', file)
    await sleep(fileMs, opened).catch(() => undefined)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function start(program: string, argument: string): Promise<void> {
  const child = spawn(program, [argument], { stdio: 'ignore', detached: true })
  await once(child, 'spawn').catch(() => {
    throw new ExitError(`there is no program "${program}" here: open the link yourself`)
  })
  child.unref()
}
