// Prepares a cluster and a working copy of the Kubernetes shell tests of kubectl.
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { kubectl, type ProgramName } from '#test/support/index.ts'
import type { RunOptions } from './run-functions.ts'
import { makeWorkingCopy } from './working-copy.ts'

export interface PrepareOptions {
  /** Directory of the working copy. */
  readonly dir: string
  readonly logDir: string
  readonly timeoutSeconds: number
  readonly signal: AbortSignal
  /** Default: kubectl and its companion program. */
  readonly programs?: readonly ProgramName[]
}

interface Kubeconfig {
  readonly clusters: readonly { cluster: { server: string; 'certificate-authority-data': string } }[]
}

/** Prepares the cluster of a kubeconfig; afterwards every user has all permissions in it. */
export async function prepare(kubeconfig: string, options: PrepareOptions): Promise<RunOptions> {
  const { dir, logDir, timeoutSeconds, signal, programs } = options
  const [cluster] = (parse(readFileSync(kubeconfig, 'utf8')) as Kubeconfig).clusters
  if (cluster === undefined) throw new Error(`there is no cluster in ${kubeconfig}`)
  const { server } = cluster.cluster
  const certificate = Buffer.from(cluster.cluster['certificate-authority-data'], 'base64').toString()
  const token = await adminToken(kubeconfig)
  const service = ['get', 'service', 'kubernetes', '-o', 'jsonpath={.spec.clusterIP}']
  const serviceIp = (await kubectl(kubeconfig, service)).stdout
  await createNode(kubeconfig)
  // Tests count the definitions, and a tenant may delete the only one that an ordinary cluster does not have.
  await kubectl(kubeconfig, ['delete', 'customresourcedefinitions', 'placements.kcp.dev', '--ignore-not-found'])
  const copy = await makeWorkingCopy(dir, { server, token, serviceIp }, programs)
  return { copy, server, token, certificate, logDir, timeoutSeconds, signal }
}

/** The Node that upstream creates by hand first, because there is no kubelet. The annotation keeps field managers. */
async function createNode(kubeconfig: string): Promise<void> {
  const metadata = { name: '127.0.0.1', annotations: { 'save-managers': 'true' } }
  const node = { apiVersion: 'v1', kind: 'Node', metadata, status: { capacity: { memory: '1Gi' } } }
  await kubectl(kubeconfig, ['create', '-f', '-'], { input: node })
}

/** A bearer token. Every user gets all permissions, as on upstream's test server. */
async function adminToken(kubeconfig: string): Promise<string> {
  // The last one appears only in a SubjectAccessReview, without being authenticated.
  const groups = ['system:authenticated', 'system:unauthenticated', 'the-group']
  const binding = ['--clusterrole=cluster-admin', ...groups.map((group) => `--group=${group}`)]
  await kubectl(kubeconfig, ['create', 'serviceaccount', 'test-cmd', '-n', 'kube-system'])
  await kubectl(kubeconfig, ['create', 'clusterrolebinding', 'test-cmd', ...binding])
  const { stdout } = await kubectl(kubeconfig, ['create', 'token', 'test-cmd', '-n', 'kube-system', '--duration=6h'])
  return stdout.trim()
}
