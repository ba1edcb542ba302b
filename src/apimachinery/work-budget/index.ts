export * from './work-budget.ts'
