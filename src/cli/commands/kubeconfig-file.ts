// The kubeconfig of the person who runs the program: contexts that `kcp use` writes, and what they say about the
// installation. Everything else in the file stays as it is.
import { mkdir, open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { parse, stringify } from 'yaml'
import { isJsonObject } from '#apimachinery/meta/index.ts'
import { ExitError } from '#cli/process/exit-error.ts'
import type { InstallationFlags } from './flags.ts'

/** Begins the name of each context, cluster and user that `kcp use` writes. */
const prefix = 'kcp-'
/** Extensions of a context and of the file. kubectl keeps them. */
const [installationExtension, previousExtension] = ['kcp.dev/installation', 'kcp.dev/previous-context']

interface Named {
  readonly name: string
  readonly [field: string]: unknown
}
interface Extension extends Named {
  readonly extension?: Readonly<Record<string, string>>
}
interface RawContext extends Named {
  readonly context?: { readonly namespace?: string; readonly extensions?: readonly Extension[] }
}
interface RawFile {
  readonly apiVersion?: string
  readonly kind?: string
  readonly 'current-context'?: string
  readonly contexts?: readonly RawContext[]
  readonly clusters?: readonly Named[]
  readonly users?: readonly Named[]
  readonly extensions?: readonly Extension[]
}

/** A context that `kcp use` has written. */
export interface KcpContext {
  /** The name of the logical cluster. */
  readonly cluster: string
  readonly isCurrent: boolean
  readonly namespace?: string
  /** Flags that find its installation. */
  readonly installation: InstallationFlags
}

/** The file that kubectl reads first. */
export function kubeconfigPath(env: NodeJS.ProcessEnv = process.env): string {
  const [first] = (env['KUBECONFIG'] ?? '').split(':').filter((path) => path !== '')
  return first ?? join(homedir(), '.kube', 'config')
}

/** The contexts of `kcp use` in the file; none if there is no such file. */
export async function kcpContexts(path: string): Promise<readonly KcpContext[]> {
  const { contexts = [], 'current-context': current } = await read(path)
  return contexts.flatMap(({ name, context }) => {
    const found = context?.extensions?.find((one) => one.name === installationExtension)?.extension
    if (found === undefined || !name.startsWith(prefix)) return []
    const installation = flagsOf(found)
    const { namespace } = context ?? {}
    return [
      {
        ...{ cluster: name.slice(prefix.length), isCurrent: name === current, installation },
        ...(namespace !== undefined && { namespace }),
      },
    ]
  })
}

function flagsOf({ rootDir, hostKubeconfig, hostContext }: Readonly<Record<string, string>>): InstallationFlags {
  if (rootDir !== undefined) return { rootDir }
  return { ...(hostKubeconfig !== undefined && { hostKubeconfig }), ...(hostContext !== undefined && { hostContext }) }
}

/** The context of `kcp use` that is current. */
export async function currentKcpContext(path = kubeconfigPath()): Promise<KcpContext | undefined> {
  return (await kcpContexts(path).catch(() => [])).find(({ isCurrent }) => isCurrent)
}

export interface NewContext {
  /** The name of the logical cluster. */
  readonly cluster: string
  /** Its URL, and the CA of the server as PEM. */
  readonly server: string
  readonly ca: string
  readonly installation: InstallationFlags
  /** The program that prints credentials, with its arguments; or a client certificate and its key, as PEM. */
  readonly credentials: readonly string[] | { readonly certificate: string; readonly key: string }
}

/** Writes the context of a logical cluster, and makes it the current one. */
export async function useContext(path: string, context: NewContext): Promise<void> {
  await edit(path, (file) => {
    const name = `${prefix}${context.cluster}`
    const cluster = { server: context.server, 'certificate-authority-data': Buffer.from(context.ca).toString('base64') }
    const namespace = file.contexts?.find((one) => one.name === name)?.context?.namespace
    const extensions = [{ name: installationExtension, extension: { ...context.installation } }]
    const references = { cluster: name, user: name, ...(namespace !== undefined && { namespace }) }
    return switched(name, {
      ...file,
      clusters: withEntry(file.clusters, { name, cluster }),
      users: withEntry(file.users, { name, user: userOf(context.credentials) }),
      contexts: withEntry(file.contexts, { name, context: { ...references, extensions } }),
    })
  })
}

function userOf(credentials: NewContext['credentials']): object {
  if ('key' in credentials) {
    const { certificate, key } = credentials
    return {
      'client-certificate-data': Buffer.from(certificate).toString('base64'),
      'client-key-data': Buffer.from(key).toString('base64'),
    }
  }
  const [command, ...args] = credentials
  const exec = {
    ...{ apiVersion: 'client.authentication.k8s.io/v1', command, args, interactiveMode: 'Never' },
    installHint: 'kcp is not found; run `kcp use` again from where it is now',
  }
  return { exec }
}

/** Makes the context that was current before the last switch the current one; resolves with its name. */
export async function usePrevious(path: string): Promise<string> {
  let previous = ''
  await edit(path, (file) => {
    previous = file.extensions?.find(({ name }) => name === previousExtension)?.extension?.['context'] ?? ''
    if (file.contexts?.some(({ name }) => name === previous) !== true)
      throw new ExitError(`there is no context to go back to in "${path}"; kcp use lists those of kcp`)
    return switched(previous, file)
  })
  return previous
}

function switched(name: string, file: RawFile): RawFile {
  const { 'current-context': current = '', extensions } = file
  if (current === name || current === '') return { ...file, 'current-context': name }
  const entry = { name: previousExtension, extension: { context: current } }
  return { ...file, 'current-context': name, extensions: withEntry(extensions, entry) }
}

/** The list with an entry in place of the one with the same name, or at its end. */
function withEntry<T extends Named>(list: readonly T[] = [], entry: T): T[] {
  const isKnown = list.some(({ name }) => name === entry.name)
  return isKnown ? list.map((one) => (one.name === entry.name ? entry : one)) : [...list, entry]
}

async function read(path: string): Promise<RawFile> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw new ExitError(`cannot read the kubeconfig "${path}": ${(error as Error).message}`)
  })
  try {
    const value: unknown = parse(text, { maxAliasCount: 0 }) ?? {}
    if (isJsonObject(value)) return value
  } catch (error) {
    throw new ExitError(`the kubeconfig "${path}" is not YAML: ${(error as Error).message.split('\n')[0] ?? ''}`)
  }
  throw new ExitError(`"${path}" is not a kubeconfig`)
}

/** Changes the file under the lock that kubectl uses. Readers see the old file or the new one. */
async function edit(path: string, change: (file: RawFile) => RawFile): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  const lock = `${path}.lock`
  const held = await open(lock, 'wx', 0o600).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST')
      throw new ExitError(`cannot write "${path}": ${(error as Error).message}`)
    throw new ExitError(`another program writes "${path}"; if none does, delete "${lock}"`)
  })
  const temporary = `${path}.${process.pid}`
  try {
    const changed = change({ apiVersion: 'v1', kind: 'Config', ...(await read(path)) })
    await writeFile(temporary, stringify(changed, { lineWidth: 0 }), { mode: 0o600 })
    await rename(temporary, path)
  } finally {
    await rm(temporary, { force: true })
    await held.close()
    await rm(lock, { force: true })
  }
}
