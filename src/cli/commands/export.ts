// `kcp export CRD...`: offers CustomResourceDefinitions of a logical cluster to others, by an APIExport.
import { isStatusError } from '#apimachinery/status/index.ts'
import { apiExports, type APIExport } from '#crds/index.ts'
import { directOf } from '#cli/across/direct.ts'
import { ExitError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { clusterOf, openInside } from './credentials.ts'
import { rootDirFlag, type InstallationFlags } from './flags.ts'
import { openInstallation } from './installation.ts'

interface Flags extends InstallationFlags {
  readonly cluster?: string
  readonly name?: string
  readonly requireAdmission?: boolean
}

const definitions = { group: 'apiextensions.k8s.io', version: 'v1', resource: 'customresourcedefinitions' } as const

/** Runs the command. */
export async function run(names: readonly string[], flags: Flags): Promise<void> {
  const signal = processSignal()
  const cluster = await clusterOf(flags)
  await using installation = await openInstallation(flags, signal)
  await using transport = await openInside(installation, cluster, signal)
  const client = directOf(transport, signal).client(cluster)
  for (const name of names)
    if ((await client.tryGet(definitions, { name }, { signal })) === undefined)
      throw new ExitError(`there is no CustomResourceDefinition "${name}" in logical cluster "${cluster}"`)
  const name = flags.name ?? names[0] ?? ''
  const resources = names.map((crd) => {
    const [plural = '', ...group] = crd.split('.')
    return { name: plural, group: group.join('.'), crd }
  })
  const object: APIExport = {
    apiVersion: 'apis.kcp.io/v1alpha2',
    kind: 'APIExport',
    metadata: { name },
    spec: { resources, ...(flags.requireAdmission === true && { admission: { required: true } }) },
  }
  await client.create(apiExports, object, { signal }).catch((error: unknown) => {
    if (!isStatusError(error, 'AlreadyExists')) throw error
    throw new ExitError(`APIExport "${name}" exists already in logical cluster "${cluster}"; choose another --name`)
  })
  console.log(`logical cluster "${cluster}" exports ${names.join(', ')} as "${name}"`)
  console.log(`use it in another one:  kcp bind ${cluster}:${name} -c NAME --grant${rootDirFlag(flags)}`)
}
