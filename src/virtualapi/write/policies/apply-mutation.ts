// One mutation of a MutatingAdmissionPolicy: its expression returns an apply configuration or a JSON patch, which is
// applied to the object in the form that the policy gets.
import {
  itemsOf,
  JsonRoom,
  mutationJson,
  ObjectValue,
  PatchValue,
  CelList,
  Program,
  type Value,
} from '#apimachinery/cel/index.ts'
import { type JsonObject, type JsonValue, type KubeObject, putField } from '#apimachinery/meta/index.ts'
import { fieldTypeOf, type FieldType, mergeConfiguration } from '#apimachinery/managed-fields/index.ts'
import { applyJsonPatch, FailedTest } from '#apimachinery/patch/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { Shown } from '#virtualapi/write/admission/shown.ts'
import { takeMutated } from '#virtualapi/write/admission/take-mutated.ts'
import type { Catalog } from '#virtualapi/catalog/catalog.ts'
import { builtInSchema } from '#virtualapi/kinds/resources/builtin-schemas.ts'
import { ownershipTypeOf } from '#virtualapi/kinds/resources/ownership-type.ts'
import type { Mutation } from './compile-mutating-policy.ts'
import type { PolicyRun } from './policy-run.ts'

/** The budget of one mutation, in cost units. */
const mutationBudget = 10_000_000

/**
 * The most bytes of JSON that one mutation may make, and that all mutations of a request may make. The second bound
 * allows several large objects, although only one is stored.
 */
const maxJsonBytes = 4 * 1024 * 1024
export const maxJsonBytesOfRequest = 16 * 1024 * 1024

interface MutationOf {
  readonly shown: Shown
  readonly catalog: Catalog
  /** The remaining bytes of JSON that mutations of the request may make. */
  readonly room: JsonRoom
}

/**
 * Writes the mutated object into the object of the request, in place. Resolves with true if that object has changed.
 */
type Take = (object: KubeObject) => Promise<boolean>

/** Evaluates a mutation. Rejects with an Error in the words of kube-apiserver if it fails. */
export async function applyMutation(
  { type, expression }: Mutation,
  run: PolicyRun,
  { shown, catalog, room: ofRequest }: MutationOf,
): Promise<Take> {
  const room = new JsonRoom(maxJsonBytes, ofRequest)
  const { compiled } = expression
  if (!(compiled instanceof Program)) throw new Error(compiled.message)
  const [result] = (await run.run([expression], mutationBudget)).results
  if (result?.error !== undefined) throw new Error(result.error)
  const value = result?.value ?? null
  const before = shown.object as unknown as JsonObject
  if (type === 'JSONPatch') {
    const patched = patchedBy(operationsIn(value, room), before)
    return (object) => takeMutated(shown, patched as unknown as KubeObject, object, { isStrict: true })
  }
  const mutated = mergedWith(configurationIn(value, room), before, typeOf(shown, catalog))
  return (object) => takeMutated(shown, mutated as unknown as KubeObject, object)
}

function configurationIn(value: Value, room: JsonRoom): JsonObject {
  if (!(value instanceof ObjectValue)) throw new Error('unsupported return type from ApplyConfiguration expression')
  requireTypeNames(value)
  return value.toJson(room)
}

/** Throws an Error if the type names of nested objects do not match the fields that contain them. */
function requireTypeNames(value: ObjectValue): void {
  const errors = value.typeErrors(new JsonRoom(maxJsonBytes))
  if (errors.length > 0) throw new Error(`type mismatch: ${errors.join('\n')}`)
}

function typeOf({ form, request }: Shown, catalog: Catalog): FieldType {
  const schema = builtInSchema(form.kind)
  if (schema !== undefined) return fieldTypeOf(schema)
  const { group, version, resource } = form
  const definition = catalog.find(request.context.objects, { group, version, resource })
  return ownershipTypeOf(definition ?? request.definition)
}

function mergedWith(config: JsonObject, object: JsonObject, type: FieldType): JsonValue {
  const { apiVersion = null, kind = null } = object
  const named = { ...config, apiVersion, kind }
  try {
    return mergeConfiguration(object, named, type)
  } catch (error) {
    throw new Error(`error applying patch: ${(error as Error).message}`, { cause: error })
  }
}

function operationsIn(value: Value, room: JsonRoom): JsonObject[] {
  if (!(value instanceof CelList)) throw new Error('type mismatch: JSONPatchType.expression should evaluate to array')
  // Each operation takes at least one byte.
  room.take(value.size)
  return itemsOf(value).map((item) => operationOf(item, room))
}

function operationOf(item: Value, room: JsonRoom): JsonObject {
  if (!(item instanceof PatchValue))
    throw new Error('type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch')
  room.take(item.op.length + item.path.length + item.from.length)
  const operation: JsonObject = { op: item.op, path: item.path }
  if (item.from !== '') operation['from'] = item.from
  if (item.value === undefined) return operation
  if (item.value instanceof ObjectValue) requireTypeNames(item.value)
  putField(operation, 'value', mutationJson(item.value, room))
  return operation
}

/** The patched object; the object itself if a test operation of the patch fails. */
function patchedBy(operations: JsonObject[], object: JsonObject): JsonValue {
  try {
    return applyJsonPatch(object, operations)
  } catch (error) {
    const cause = isStatusError(error) ? error.cause : undefined
    if (cause instanceof FailedTest) return object
    throw new Error(`JSON Patch: ${cause instanceof Error ? cause.message : (error as Error).message}`, {
      cause: error,
    })
  }
}
