export * from './contract/index.ts'
export * from './control.ts'
