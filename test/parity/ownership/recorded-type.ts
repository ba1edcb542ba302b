// Types of a recorded schema as ours.
import type { JsonValue } from '#apimachinery/meta/index.ts'
import { deducedType, untypedAtomic, type FieldType } from '#apimachinery/managed-fields/index.ts'

export interface RecordedType {
  readonly name?: string
  readonly inlined?: RecordedAtom
  readonly relationship?: string
}

interface RecordedAtom {
  readonly scalar?: NonNullable<FieldType['scalar']>
  readonly list?: { readonly relationship: string; readonly keys: readonly string[]; readonly items: RecordedType }
  readonly map?: {
    readonly relationship: string
    readonly fields: Readonly<Record<string, { readonly type: RecordedType; readonly default: JsonValue }>>
    readonly values: RecordedType
  }
}

/** The types of one schema; each is made once. */
export class RecordedTypes {
  readonly #atoms: Readonly<Record<string, RecordedAtom>>
  readonly #known = new Map<string, FieldType>([
    ['__untyped_deduced_', deducedType],
    ['__untyped_atomic_', untypedAtomic],
  ])

  constructor(atoms: Readonly<Record<string, RecordedAtom>>) {
    this.#atoms = atoms
  }

  typeOf({ name, inlined, relationship }: RecordedType): FieldType {
    const type = name === undefined ? this.#filled({}, inlined ?? {}) : this.#named(name)
    if (relationship === undefined) return type
    const atomic = relationship === 'atomic'
    if (type.map !== undefined) return { ...type, map: { ...type.map, atomic } }
    return type.list === undefined ? {} : { ...type, list: { ...type.list, atomic } }
  }

  #named(name: string): FieldType {
    const known = this.#known.get(name)
    if (known !== undefined) return known
    const type: FieldType = {}
    this.#known.set(name, type)
    return this.#filled(type, this.#atoms[name] ?? {})
  }

  #filled(type: FieldType, { scalar, list, map }: RecordedAtom): FieldType {
    if (scalar !== undefined) type.scalar = scalar
    if (list !== undefined)
      type.list = { atomic: list.relationship !== 'associative', keys: list.keys, items: this.typeOf(list.items) }
    if (map !== undefined) {
      const fields = Object.entries(map.fields).map(
        ([name, field]) =>
          [
            name,
            { type: this.typeOf(field.type), ...(field.default === null ? {} : { default: field.default }) },
          ] as const,
      )
      const declared = map.values.name !== undefined || Object.keys(map.values.inlined ?? {}).length > 0
      type.map = {
        atomic: map.relationship === 'atomic',
        fields: new Map(fields),
        values: declared ? this.typeOf(map.values) : undefined,
      }
    }
    return type
  }
}
