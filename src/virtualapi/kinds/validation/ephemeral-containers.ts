// Validation of ephemeral containers, which are added to a running pod for debugging.
import type { V1EphemeralContainer } from '@kubernetes/client-node'
import { fieldDuplicate, fieldForbidden, fieldNotFound } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { commonCauses, imageCauses, type Container, type ContainerContext } from './containers.ts'

const forbidden = [
  'ports',
  'resources',
  'resizePolicy',
  'livenessProbe',
  'readinessProbe',
  'startupProbe',
  'lifecycle',
] as const
const forbiddenText = 'cannot be set for an Ephemeral Container'

/** Validation errors of the ephemeral containers. `others`: all other containers of the pod. */
export function ephemeralContainersCauses(
  path: string,
  containers: readonly Data<V1EphemeralContainer>[] | undefined,
  others: readonly Container[],
  context: ContainerContext,
): StatusCause[] {
  if (!containers?.length) return []
  const targets = new Set(others.map(({ name }) => name))
  const names = new Set(targets)
  return containers
    .flatMap((container, index) => {
      const at = `${path}[${index}]`
      const { name, targetContainerName: target } = container
      const causes = commonCauses(at, container, context)
      if (names.has(name)) causes.push(fieldDuplicate(`${at}.name`, name))
      names.add(name)
      if (target && !targets.has(target)) causes.push(fieldNotFound(`${at}.targetContainerName`, target))
      for (const member of forbidden)
        if (isSet(container[member])) causes.push(fieldForbidden(`${at}.${member}`, forbiddenText))
      return [...causes, ...subPathCauses(`${at}.volumeMounts`, container)]
    })
    .concat(imageCauses(path, containers))
}

/** Decoding always sets resources, possibly to an empty object. */
function isSet(value: object | undefined): boolean {
  return value !== undefined && Object.keys(value).length > 0
}

function subPathCauses(path: string, { volumeMounts }: Data<V1EphemeralContainer>): StatusCause[] {
  return (volumeMounts ?? []).flatMap((mount, index) =>
    (['subPath', 'subPathExpr'] as const)
      .filter((member) => mount[member])
      .map((member) => fieldForbidden(`${path}[${index}].${member}`, forbiddenText)),
  )
}
