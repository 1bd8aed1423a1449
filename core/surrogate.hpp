// Surrogates: what stands in for the black box. One forward pass serves predictions of many rows and refinement.
//
// A surrogate is a perceptron, trees, the mean of both, or the exact copy of a network. Refinement asks about one row
// after the other that differ in few features. So what a first layer hears of the last row is kept in a tree of partial
// sums over features; and of the row that a workspace rests on, what each tree says, and between which values every
// feature may move before a tree says something else. The result is that of an evaluation from nothing, bit for bit, as
// sums are made in one order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace dicoflex {

// Where features stand among the reals of a network: the one-hot table, in which a number that may be missing has a
// pair besides, there or missing. -1 stands for nowhere. codes: how many codes each feature has, 0 of numbers.
struct RealPlaces {
    std::vector<std::int64_t> codes, number_at, level_at;
    std::vector<std::uint8_t> is_pair;

    std::size_t size() const { return number_at.size(); }
};

// Two hidden layers of rectifiers, on numbers that are standardised and held within ten deviations.
struct Perceptron {
    RealPlaces places;
    std::vector<double> mean, scale;  // by feature
    std::vector<float> w0, b0, w1, b1;
    std::vector<float> w2;  // [classes][hidden]
    std::vector<float> b2;

    std::size_t n_scores() const { return b2.size(); }
};

enum Activation : std::int64_t { IDENTITY, RELU, TANH, LOGISTIC };

// A network of any depth in double precision, on numbers as they are.
struct Network {
    RealPlaces places;
    std::vector<std::int64_t> size;  // reals, hidden units layer by layer, scores
    std::vector<double> weight, bias;
    std::int64_t activation;

    std::size_t n_scores() const { return static_cast<std::size_t>(size.back()); }
};

// A node goes left where its feature is at most its threshold. One without a feature (-1) is a leaf; its threshold is
// the value.
struct TreeNode {
    double threshold;
    std::int32_t feature, left, right;
    bool missing_left;
};

// Trees of one round stand together, one per score. averaged: over how many trees a score is averaged; 0 where it is
// their sum, and a logit.
struct Trees {
    std::vector<std::int64_t> start;
    std::vector<TreeNode> nodes;
    std::vector<double> baseline;
    double averaged;
    std::int64_t n_read;                // one more than the last feature that is read
    std::vector<std::int64_t> path_at;  // [trees + 1]: where the features of each tree's way fit, one after the other

    std::size_t n_scores() const { return baseline.size(); }
};

struct Surrogate {
    std::size_t n_classes;
    std::optional<Perceptron> perceptron;
    std::optional<Trees> trees;
    std::optional<Network> network;

    // Where features stand among the reals, if it has a network.
    const RealPlaces* places() const {
        return perceptron ? &perceptron->places : network ? &network->places : nullptr;
    }
};

// Whether it can read rows of so many features.
bool reads_within(const Surrogate& surrogate, std::size_t n_features);

// What a first layer hears of a row: sums[i] = sums[2 i] + sums[2 i + 1], features from place d on; sums[1] is all.
template <typename Number>
struct FirstLayer {
    std::size_t width = 0;
    std::vector<Number> sums;
};

// What trees say of the row that a workspace rests on.
struct TreesAtRest {
    bool known = false;
    std::vector<double> row;
    std::vector<double> leaf;         // [trees]
    std::vector<double> above, upto;  // [d][trees]: a feature in (above, upto] leaves a tree at its leaf
    std::vector<std::uint8_t> reads;  // [d][trees]: whether the feature is read on the way
    std::vector<std::int32_t> path;   // the features on each tree's way
    std::vector<std::int64_t> n_path;  // [trees]
};

// Room to judge rows in, one after the other. It belongs to one thread and one surrogate.
struct SurrogateWork {
    SurrogateWork(const Surrogate& surrogate, std::size_t n_features);

    bool known = false;
    std::vector<double> row;  // the last one
    std::vector<std::int32_t> moved;
    FirstLayer<float> heard;
    std::vector<float> first, second, rectified;
    FirstLayer<double> heard_network;
    std::vector<double> units, units_next;
    TreesAtRest rest;
    std::vector<double> leaf;             // [trees]
    std::vector<std::uint8_t> elsewhere;  // [trees]: whether a tree may say something else than at rest
    std::vector<double> scores, chances, other_chances;
};

// Rest on a row: rows that differ from it in few features are judged faster.
void rest_on(const Surrogate& surrogate, std::span<const double> row, SurrogateWork& work);

// The scores of a surrogate of one kind: the last layer, or the trees' sums.
std::span<const double> scores_of(const Surrogate& surrogate, std::span<const double> row, SurrogateWork& work);

// The probabilities of the classes.
std::span<const double> probabilities_of(const Surrogate& surrogate, std::span<const double> row, SurrogateWork& work);

}  // namespace dicoflex
