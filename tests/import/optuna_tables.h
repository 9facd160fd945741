// An SQLite storage of Optuna: the tables that hold studies with their trials.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <string>

namespace shirabe::import {

inline constexpr char kOptunaTables[] = R"sql(
CREATE TABLE studies (study_id INTEGER PRIMARY KEY, study_name TEXT);
CREATE TABLE study_directions (study_id INTEGER, direction TEXT, objective INTEGER);
CREATE TABLE trials (trial_id INTEGER PRIMARY KEY, number INTEGER, study_id INTEGER, state TEXT,
                     datetime_start TEXT, datetime_complete TEXT);
CREATE TABLE trial_params (param_id INTEGER PRIMARY KEY, trial_id INTEGER, param_name TEXT,
                           param_value REAL, distribution_json TEXT);
CREATE TABLE trial_values (trial_id INTEGER, objective INTEGER, value REAL, value_type TEXT);
CREATE TABLE trial_intermediate_values (trial_id INTEGER, step INTEGER, intermediate_value REAL,
                                        intermediate_value_type TEXT);
)sql";

// A database at `path`, made by `sql`.
inline void WriteSqlite(const std::string& path, const std::string& sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  char* error = nullptr;
  EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK)
      << (error == nullptr ? "" : error);
  sqlite3_close(db);
}

}  // namespace shirabe::import
