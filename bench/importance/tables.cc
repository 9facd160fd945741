// How well importances tell on tables of networks that were really trained, whose shares are
// computed from all rows of a table: see tables.py, which makes the files and asks Optuna.
//
//   importance_tables FOLDER [SEEDS]     FOLDER: of NAME.table; prints a table, and leaves each
//                                        history as NAME.KIND.N.SEED.trials: levels, then the loss
//
// A .table is text: the number of parameters; of each one its kind (int or categorical), its number
// of levels and its name; then, of every combination of levels, the last parameter fastest, how
// often it was trained and the losses.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/importance/score.h"

namespace shirabe::suggestion::analysis {
namespace {

namespace fs = std::filesystem;

struct Table {
  std::string name;
  std::vector<size_t> levels;
  Space space;
  std::vector<std::vector<double>> losses;  // by row

  size_t RowOf(const Point& point) const {
    size_t row = 0;
    for (int j = 0; j < space.size(); ++j) row = row * levels[j] + space.axis(j).Level(point[j]);
    return row;
  }
};

Table ReadTable(const fs::path& path) {
  std::ifstream file(path);
  size_t parameters = 0, rows = 1;
  file >> parameters;
  std::vector<size_t> levels;
  std::vector<v1::ParameterSpec> specs;
  for (size_t j = 0; j < parameters; ++j) {
    std::string kind, name;
    size_t count = 0;
    file >> kind >> count >> name;
    levels.push_back(count);
    rows *= count;
    std::vector<std::string> words;
    for (size_t k = 0; k < count; ++k) words.push_back(absl::StrCat("v", k));
    specs.push_back(kind == "int" ? Int(name, {0, static_cast<double>(count) - 1})
                                  : Categorical(name, words));
  }
  Table table{path.stem(), levels, Make(specs), {}};
  for (size_t i = 0; i < rows; ++i) {
    size_t count = 0;
    file >> count;
    std::vector<double> losses(count);
    for (double& loss : losses) file >> loss;
    table.losses.push_back(std::move(losses));
  }
  if (!file) {
    std::cerr << path << ": is shorter than its first lines say: make it again by tables.py\n";
    std::exit(1);
  }
  return table;
}

double MeanOf(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// E[V[f | all but x_j]] / V[f], over all rows, where f is the mean of what a row was trained to.
std::vector<double> ExactTotals(const Table& table) {
  std::vector<double> f;
  for (const auto& losses : table.losses) f.push_back(MeanOf(losses));
  const double mean = MeanOf(f);
  double variance = 0;
  for (const double value : f) variance += (value - mean) * (value - mean);
  std::vector<double> totals;
  size_t stride = f.size();
  for (const size_t levels : table.levels) {
    const size_t block = stride;
    stride /= levels;
    double within = 0;
    for (size_t row = 0; row < f.size(); ++row) {
      if (row % block >= stride) continue;  // the first of its line
      double sum = 0;
      for (size_t k = 0; k < levels; ++k) sum += f[row + k * stride];
      const double centre = sum / static_cast<double>(levels);
      for (size_t k = 0; k < levels; ++k) {
        within += (f[row + k * stride] - centre) * (f[row + k * stride] - centre);
      }
    }
    totals.push_back(within / variance);
  }
  return totals;
}

void Write(const fs::path& path, const Table& table, const History& history) {
  std::ofstream file(path);
  file.precision(17);
  for (int64_t i = 0; i < history.size(); ++i) {
    const Point point = history.point(i);
    for (int j = 0; j < table.space.size(); ++j) file << table.space.axis(j).Level(point[j]) << ' ';
    file << history.trial(i).loss << '\n';
  }
}

void WriteTruth(const fs::path& path, const std::vector<double>& truth) {
  std::ofstream file(path);
  for (const double total : truth) file << total << '\n';
}

void RunOn(const fs::path& folder, const Table& table, int seeds) {
  const std::vector<double> truth = ExactTotals(table);
  WriteTruth(folder / (table.name + ".truth"), truth);
  for (const char* kind : {"random", "bayesian"}) {
    for (const int n : {50, 150}) {
      Score score;
      for (int seed = 1; seed <= seeds; ++seed) {
        const auto root = static_cast<uint64_t>(seed);
        Rng training(root);
        const Loss loss = [&](const Point& point) {  // of one training by chance, as a trial is
          const auto& losses = table.losses[table.RowOf(point)];
          return losses[training.Next() % losses.size()];
        };
        const History history =
            kind[0] == 'r' ? RandomHistory(table.space, n, loss, root)
                           : HistoryOf("bayesianoptimization", table.space, n, {loss, root});
        score.Add(history, truth);
        Write(folder / absl::StrCat(table.name, ".", kind, ".", n, ".", seed, ".trials"), table,
              history);
      }
      score.Print(table.name, kind, n);
    }
  }
}

int RunAll(const fs::path& folder, int seeds) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".table") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  if (paths.empty()) {
    std::cerr << folder << ": has no .table: make them by bench/importance/tables.py export\n";
    return 1;
  }
  Score::PrintHead("table");
  for (const fs::path& path : paths) RunOn(folder, ReadTable(path), seeds);
  return 0;
}

}  // namespace
}  // namespace shirabe::suggestion::analysis

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "importance_tables FOLDER [SEEDS]\n";
    return 2;
  }
  const int seeds = argc > 2 ? std::max(1, std::atoi(argv[2])) : 4;
  return shirabe::suggestion::analysis::RunAll(argv[1], seeds);
}
