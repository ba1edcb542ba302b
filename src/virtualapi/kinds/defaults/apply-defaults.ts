// Runs the default functions over a decoded object: on every value whose struct has a default function, parents before
// children.
import { isJsonObject, type JsonObject } from '#apimachinery/meta/index.ts'
import { coreDefaults } from './core-defaults.ts'
import type { DefaultFunctions } from './default-functions.ts'
import { podDefaults } from './pod-defaults.ts'
import { policyDefaults } from './policy-defaults.ts'
import { workloadDefaults } from './workload-defaults.ts'
import { structNamed, type Member, type StructType } from '#virtualapi/kinds/resources/typed/go-types.ts'

const functions: DefaultFunctions = { ...coreDefaults, ...podDefaults, ...workloadDefaults, ...policyDefaults }
const membersWithDefaults = new Map<string, readonly Member[]>()
const hasDefaults = new Map<string, boolean>()

/** Sets defaults. Mutates `value`, which must be decoded. */
export function applyTypedDefaults(struct: StructType, value: JsonObject): void {
  functions[struct.name]?.(value)
  for (const member of relevantMembers(struct)) {
    const child = value[member.name]
    if (Array.isArray(child)) for (const item of child) applyTo(member, item)
    else if (member.container === 'map' && isJsonObject(child))
      for (const item of Object.values(child)) applyTo(member, item)
    else applyTo(member, child)
  }
}

function applyTo({ struct }: Member, value: unknown): void {
  if (isJsonObject(value)) applyTypedDefaults(structNamed(struct), value)
}

/** The members that contain defaults at any depth; other parts of an object are not visited. */
function relevantMembers(struct: StructType): readonly Member[] {
  let members = membersWithDefaults.get(struct.name)
  if (members === undefined) {
    members = struct.members.filter((member) => member.code === '@' && reachesDefaults(member.struct))
    membersWithDefaults.set(struct.name, members)
  }
  return members
}

function reachesDefaults(name: string): boolean {
  const known = hasDefaults.get(name)
  if (known !== undefined) return known
  // This ends the recursion, because a struct inside itself adds no new defaults.
  hasDefaults.set(name, false)
  const found =
    functions[name] !== undefined ||
    structNamed(name).members.some((member) => member.code === '@' && reachesDefaults(member.struct))
  hasDefaults.set(name, found)
  return found
}
