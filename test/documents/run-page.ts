// Runs the command blocks of a page in their order, in one shell, as a reader does who has bin/ in PATH.
import { copyFile, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { CommandBlock } from '#scripts/documents/command-blocks.ts'
import { ensurePrograms, freePort, kcpProgram, repositoryRoot, runCommand, startCluster } from '#test/support/index.ts'

const marker = '@@ block at line '

export interface PageResult {
  readonly code: number
  /** The line of the block that ended the script; 0: none began. */
  readonly lastLine: number
  readonly output: string
}

/** Runs the blocks of a page in an empty directory, which is removed afterwards. */
export async function runPage(blocks: readonly CommandBlock[], timeoutMs: number): Promise<PageResult> {
  await using stack = new AsyncDisposableStack()
  const dir = await mkdtemp(join(tmpdir(), 'kcp-documents-'))
  stack.defer(() => rm(dir, { recursive: true, force: true }))
  const { kubectl } = await ensurePrograms(['kubectl'])
  let hostAddress: string | undefined
  if (blocks.some(needsHost)) {
    const host = stack.use(await startCluster({ name: 'documents' }))
    await copyFile(host.kubeconfig, join(dir, 'host.kubeconfig'))
    ;({ hostAddress } = host)
  }
  const bin = await programs(dir, { kubectl, hostAddress })
  await writeFile(join(dir, 'page.sh'), scriptOf(blocks))
  const env = {
    PATH: `${bin}:${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`,
    HOME: dir,
    KUBECONFIG: undefined,
    KCP_ROOT: '.run/kcp',
    SHELL: '/bin/sh',
    TERM: 'dumb',
    NODE_COMPILE_CACHE: join(repositoryRoot, 'dist', 'compile-cache'),
  }
  // Ends before the test does, so that the script can end what it has started.
  const args = ['--signal=TERM', String(timeoutMs / 1000), 'bash', 'page.sh']
  const options = { cwd: dir, env, timeoutMs: timeoutMs + 15_000, expectCode: 'any' } as const
  const { code, stdout, stderr } = await runCommand('timeout', args, options)
  const lines = [...stderr.matchAll(new RegExp(`^${marker}(\\d+)$`, 'gm'))].map(([, line]) => Number(line))
  return { code, lastLine: lines.at(-1) ?? 0, output: `${stdout.slice(-4000)}\n${stderr.slice(-4000)}` }
}

/** Whether the page calls `host` of the prelude. */
function needsHost({ kind, text }: CommandBlock): boolean {
  return kind === 'setup' && text.split('\n').includes('host')
}

/**
 * `bin` with kcp and kubectl. Servers listen on a free port, because other tests run beside, and that before a host on
 * the address at which the host reaches them.
 */
async function programs(
  dir: string,
  { kubectl, hostAddress }: { readonly kubectl: string; readonly hostAddress: string | undefined },
): Promise<string> {
  const bin = join(dir, 'bin')
  await mkdir(bin)
  const start = `--port ${await freePort()}`
  const address = hostAddress === undefined ? '' : ` --bind-address ${hostAddress} --advertise-address ${hostAddress}`
  const apiserver = `--port ${await freePort(hostAddress)}${address}`
  const shim = `#!/bin/sh
case "$1" in
  start) shift; exec ${kcpProgram} start ${start} "$@" ;;
  apiserver) shift; exec ${kcpProgram} apiserver ${apiserver} "$@" ;;
  *) exec ${kcpProgram} "$@" ;;
esac
`
  await writeFile(join(bin, 'kcp'), shim, { mode: 0o755 })
  await symlink(kubectl, join(bin, 'kubectl'))
  for (const name of ['kubectl-kcp', 'kubectl_complete-kcp'])
    await symlink(join(dirname(kcpProgram), name), join(bin, name))
  // Pages refer to files of the checkout.
  for (const name of ['config', 'examples', 'charts']) await symlink(join(repositoryRoot, name), join(dir, name))
  return bin
}

function scriptOf(blocks: readonly CommandBlock[]): string {
  const parts = blocks.filter(({ notRun }) => notRun === undefined).map(blockText)
  return [`. ${join(import.meta.dirname, 'prelude.sh')}`, ...parts, `echo '${marker}0' >&2`, ''].join('\n')
}

function blockText({ line, text, until }: CommandBlock): string {
  const begin = `echo '${marker}${line}' >&2`
  if (until === undefined) return `${begin}\n${text}`
  return `${begin}\n{\n${text}\n} > "background-${line}.log" 2>&1 &\nwait_until ${until}`
}
