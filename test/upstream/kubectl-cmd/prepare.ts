// A cluster as the Kubernetes shell tests of kubectl expect it, and a working copy of them for it.
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { kubectl, type ProgramName } from '../../support/index.ts'
import type { RunOptions } from './run-functions.ts'
import { makeWorkingCopy } from './working-copy.ts'

export interface PrepareOptions {
  /** Of the working copy. */
  readonly dir: string
  readonly logDir: string
  readonly timeoutSeconds: number
  readonly signal: AbortSignal
  /** Whether assertions about managers of fields stay. */
  readonly fieldManagers: boolean
  /** kubectl and its companion by default. */
  readonly programs?: readonly ProgramName[]
}

interface Kubeconfig {
  readonly clusters: readonly { cluster: { server: string; 'certificate-authority-data': string } }[]
}

/** Makes ready the cluster of a kubeconfig; everybody may do everything in it afterwards. */
export async function prepare(kubeconfig: string, options: PrepareOptions): Promise<RunOptions> {
  const { dir, logDir, timeoutSeconds, signal, fieldManagers, programs } = options
  const [cluster] = (parse(readFileSync(kubeconfig, 'utf8')) as Kubeconfig).clusters
  if (cluster === undefined) throw new Error(`there is no cluster in ${kubeconfig}`)
  const { server } = cluster.cluster
  const certificate = Buffer.from(cluster.cluster['certificate-authority-data'], 'base64').toString()
  const token = await adminToken(kubeconfig)
  const service = ['get', 'service', 'kubernetes', '-o', 'jsonpath={.spec.clusterIP}']
  const serviceIp = (await kubectl(kubeconfig, service)).stdout
  await createNode(kubeconfig)
  const copy = await makeWorkingCopy(dir, { server, token, serviceIp, fieldManagers }, programs)
  return { copy, server, token, certificate, logDir, timeoutSeconds, signal }
}

/** The Node that upstream makes by hand before it begins: there is no kubelet. The annotation keeps field managers. */
async function createNode(kubeconfig: string): Promise<void> {
  const metadata = { name: '127.0.0.1', annotations: { 'save-managers': 'true' } }
  const node = { apiVersion: 'v1', kind: 'Node', metadata, status: { capacity: { memory: '1Gi' } } }
  await kubectl(kubeconfig, ['create', '-f', '-'], { input: node })
}

/** A bearer token; everybody may do everything, as upstream starts its server. */
async function adminToken(kubeconfig: string): Promise<string> {
  // The last one is asked about in a SubjectAccessReview, without being authenticated.
  const groups = ['system:authenticated', 'system:unauthenticated', 'the-group']
  const binding = ['--clusterrole=cluster-admin', ...groups.map((group) => `--group=${group}`)]
  await kubectl(kubeconfig, ['create', 'serviceaccount', 'test-cmd', '-n', 'kube-system'])
  await kubectl(kubeconfig, ['create', 'clusterrolebinding', 'test-cmd', ...binding])
  const { stdout } = await kubectl(kubeconfig, ['create', 'token', 'test-cmd', '-n', 'kube-system', '--duration=6h'])
  return stdout.trim()
}
