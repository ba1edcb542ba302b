// Runs a program that shows a link, and opens the link in a browser of the test.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { dirname } from 'node:path'

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
  /** How many links were shown. */
  readonly links: number
}

/** Resolves when the program has ended. Without a browser nobody signs in. `home` is the folder of its files. */
export async function runSigningIn(
  command: string,
  args: readonly string[],
  { browser, home }: { readonly browser?: { open(link: string): Promise<unknown> }; readonly home: string },
): Promise<Ended> {
  const path = `${dirname(process.execPath)}:${process.env.PATH ?? ''}`
  const child = spawn(command, args, { env: { ...process.env, PATH: path, HOME: home, KUBECONFIG: '' } })
  child.stdin.end()
  let [stdout, stderr, links] = ['', '', 0]
  const opened: Promise<unknown>[] = []
  child.stdout.on('data', (part: Buffer) => (stdout += part.toString()))
  child.stderr.on('data', (part: Buffer) => {
    stderr += part.toString()
    const found = [...stderr.matchAll(/browser: (http\S+)\n/g)]
    for (const [, link = ''] of found.slice(links)) if (browser) opened.push(browser.open(link))
    links = found.length
  })
  const [code] = (await once(child, 'close')) as [number | null]
  await Promise.all(opened)
  return { code, stdout, stderr, links }
}
