// /version: the Kubernetes version that this server behaves like.

/** The Kubernetes version from which the tables are generated. */
export const kubernetesVersion = 'v1.34.3'

/**
 * The document of `/version`. Helm and kubectl parse gitVersion as a semantic version; the part after the plus is our
 * version.
 */
export function versionInfo({
  programVersion,
  server = 'kcp',
  gitCommit = '',
  buildDate = '1970-01-01T00:00:00Z',
  platform = `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`,
}: {
  programVersion: string
  /** A plain cluster is no logical cluster, which clients see by this word. */
  server?: 'kcp' | 'simulated'
  gitCommit?: string
  buildDate?: string
  platform?: string
}): Record<string, string> {
  return {
    major: '1',
    minor: '34',
    emulationMajor: '1',
    emulationMinor: '34',
    minCompatibilityMajor: '1',
    minCompatibilityMinor: '33',
    gitVersion: `${kubernetesVersion}+${server}-${programVersion}`,
    gitCommit,
    gitTreeState: '',
    buildDate,
    goVersion: '',
    compiler: `node-${process.version}`,
    platform,
  }
}
